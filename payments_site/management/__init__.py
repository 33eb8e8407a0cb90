"""Arguments in, one call, words out."""
