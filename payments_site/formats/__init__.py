"""How dates and times are written, whatever Django thinks usual in a language: as the API has them."""
