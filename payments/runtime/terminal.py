"""Texts from outside, such as names of files, as a terminal may show them."""


def printable(text: str) -> str:
    r"""Return a text in one line that cannot control a terminal: with escapes such as \x1b for other characters.

    These are control characters, line breaks, directions of text, and bytes of a file name that are not UTF-8.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
