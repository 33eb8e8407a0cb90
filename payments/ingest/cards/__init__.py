"""Card numbers and security codes in a record, which must not be stored."""
