"""Texts within SQL."""


def quoted(text: str) -> str:
    """Return a text as a literal of SQL, with standard-conforming strings."""
    return "'" + text.replace("'", "''") + "'"
