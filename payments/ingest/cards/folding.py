"""Folds texts: characters that a reader cannot distinguish become the same ASCII character."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final

# Each character is folded once. All of Unicode would take much memory, so the cache is limited.
CACHED_CHARACTERS: Final = 4096

# Invisible (format characters, such as zero-width spaces), or part of the character before (combining marks).
REMOVED_CATEGORIES: Final = frozenset({"Cf", "Mn", "Me"})

# Letters and symbols that look like a space: Hangul fillers and the empty Braille pattern.
LOOKS_LIKE_SPACE: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800")

# Digits as HTML, URLs and JSON write them: `&#52;`, `&#x34;`, `%34`, `\u0034`.
ENCODED_DIGIT = re.compile(r"(?:%|\\u00|&#[Xx]0{0,6})3([0-9]);?|&#0{0,6}(4[89]|5[0-7]);?")

# Tags, and characters as HTML, URLs and JSON write them, except letters: `<b>`, `&nbsp;`, `%20`, `\n`.
ENCODED = re.compile(
    r"<[^<>]*>|&#?[0-9A-Za-z]{1,10};|%(?:[012][0-9A-Fa-f]|3[A-Fa-f]|[89A-Fa-f][0-9A-Fa-f])|\\(?:[nrt]|u[0-9A-Fa-f]{4})"
)
MAY_BE_ENCODED = re.compile(r"[<&%\\]")

# Letters that look like Latin ones: Cyrillic, Greek, small capitals, and the dotless i.
LOOK_ALIKES: Final = dict(
    zip(
        "авеікмнорстухѵѕԁјАВЕІКМНОРСТУХѴЅЈαεικνορυχΑΒΕΗΙΚΜΝΟΡΤΥΧᴄɪɴᴘᴠı",
        "abeikmhopctyxvsdjABEIKMHOPCTYXVSJaeikvopvxABEHIKMNOPTYXcinpvi",
        strict=True,
    )
)

# A few characters have a long form, which contains no digits.
FORM_CHARACTERS_MAX: Final = 4
LETTER: Final = "a"

WHITESPACE = re.compile(r"\s+")


def readings(text: str) -> Iterator[str]:
    """Yield the folded text and, if it may have tags or encoded characters, also the text with spaces instead of these.

    Encoded digits become digits.
    """
    yield fold(text)
    if MAY_BE_ENCODED.search(text):
        yield fold(ENCODED.sub(" ", ENCODED_DIGIT.sub(lambda digit: digit[1] or chr(int(digit[2])), text)))


def fold(text: str) -> str:
    """Return a text with ASCII digits for all digits, single spaces, and no invisible characters.

    Other characters are in the form NFKC of Unicode. Each is folded on its own: normalizing a whole text takes
    quadratic time if it has many combining marks.

    Cost: linear in the length of the text.
    """
    if not text.isascii():
        text = text.translate(FOLDED)
    has_unusual_whitespace = "  " in text or not text.isprintable()
    return WHITESPACE.sub(" ", text) if has_unusual_whitespace else text


def fold_character(character: str) -> str:
    category = unicodedata.category(character)
    if category in REMOVED_CATEGORIES:
        return ""
    if category[0] == "Z" or character in LOOKS_LIKE_SPACE:
        return " "
    digit = unicodedata.digit(character, None)
    form = unicodedata.normalize("NFKC", character) if digit is None else str(digit)
    return form if len(form) <= FORM_CHARACTERS_MAX else LETTER


def spell(text: str) -> str:
    """Return a folded text with Latin letters instead of those that have accents or look like Latin ones."""
    return text if text.isascii() else text.translate(SPELLED)


def spell_character(character: str) -> str:
    letter = unicodedata.normalize("NFD", character)[0]
    return LOOK_ALIKES.get(letter, letter if letter.isascii() else character)


class CachedTable(dict[int, str]):
    """What a function returns for each character, by its code point: a table for `str.translate`."""

    def __init__(self, function: Callable[[str], str]) -> None:
        self.function = function

    def __missing__(self, code_point: int) -> str:
        result = self.function(chr(code_point))
        if len(self) < CACHED_CHARACTERS:
            self[code_point] = result
        return result


FOLDED = CachedTable(fold_character)
SPELLED = CachedTable(spell_character)
