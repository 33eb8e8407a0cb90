"""Protects texts in CSV files from spreadsheets, and restores them.

A spreadsheet evaluates a cell that starts with a formula character (OWASP, CSV injection). A cell can also start within
a text: after a semicolon or a tab, where some spreadsheets split lines, and after a line break if the text is pasted.
Some spreadsheets skip a tab or a line break at the start of a cell.

A spreadsheet or a data library converts a cell that looks like a number, a date, a time, a truth value or a missing
value: it writes 84820 for 00084820. The patterns below match more texts than LibreOffice and Gnumeric convert.
"""

import re
from collections.abc import Iterable

FORMULA = "=+\\-@\uff1d\uff0b\uff0d\uff20"  # the last four are full-width forms
LETTER = r"[^\W\d_]"
DIGIT = r"[^\D]"  # of any script
SIGN = r"[\s.,:/'()%+\-\u2010-\u2015\u2019\u2030\u2212$\xa2-\xa5\u20a0-\u20cf]"

# Words of dates and amounts: how months begin in ten languages, and currencies.
NAMES = (
    r"(?:jan|jän|ene|gen|feb|fév|fev|mar|mär|mrz|mrt|maa|apr|avr|abr|may|mai|mei|maj|mag|jun|jui|giu|jul|lug|aug|aoû|ago|"
    rf"sep|set|oct|okt|ott|out|nov|dec|dez|des|déc|dic){LETTER}*+|(?:eur|usd|gbp|chf|dm|fr|kr|zł|kč|ft|tl|r(?=\$))(?!{LETTER})"
)
AFTER_NUMBERS = rf"(?:am|pm|a|p|h|uhr|日)(?!{LETTER})"
WORDS = (
    r"true|false|wahr|falsch|vrai|faux|waar|onwaar|verdadero|verdadeiro|falso|vero|sant|falskt|sand|falsk|usann|prawda|"
    r"fałsz|#?n/?a|<na>|null|none|nan|inf|infinity|\."
)

# Numbers with words between them, which may be months in any language.
# `(?:...)?+` and `(?:...)*+` are wrong before Python 3.11.5 if `...` can fail after its start.
NUMBERS = (
    rf"{SIGN}*+(?>(?:(?:{NAMES}){SIGN}*+)?){DIGIT}(?:{DIGIT}|{SIGN})*+"
    rf"(?>(?:{LETTER}++{SIGN}*+{DIGIT}(?:{DIGIT}|{SIGN})*+|(?:{NAMES}|{AFTER_NUMBERS}){SIGN}*+)*)"
)
WHOLE = r"(?:0|[1-9][0-9]{0,10})(?:\0|\Z)"  # a number that spreadsheets write as it is; they round longer ones
CONVERTED = rf"(?!{WHOLE})(?:{NUMBERS}|\s*+(?:{WORDS})\s*+|\s++)(?:\0|\Z)"
starts_changed_text = re.compile(rf"[{FORMULA}\t\r\n]|{CONVERTED}").match

# The places within a text where a spreadsheet could see a formula, before and after an apostrophe has been added there.
# A quotation mark there may stand around a cell.
UNPROTECTED = re.compile(rf"(?<=[;\t\r\n])(?=['\"]*[{FORMULA}])")
PROTECTED = re.compile(rf"(?<=[;\t\r\n])'(?=['\"]*[{FORMULA}])")

# Finds rows that may need protection; NUL precedes each cell. Searching each cell would take three times as long.
SUSPICIOUS_ROW = re.compile(rf"[\0;\t\r\n](?:['\"]*[{FORMULA}]|(?<=\0)(?:['\t\r\n]|{CONVERTED}))")

# The spaces and delimiters before a formula character where a cell can start, also in a file with another delimiter.
BEFORE_FORMULA = re.compile(rf"(?:\A|(?<![\s,;])[^\S\t\r\n]*+[,;\t\r\n])[\s,;\"]*+(?=[{FORMULA}])")


def may_need_protection(texts: Iterable[str]) -> bool:
    """Return whether one of the texts may need to be protected. This is fast."""
    return SUSPICIOUS_ROW.search("\0".join(["", *texts]).lower()) is not None


def protect(text: str) -> str:
    """Return a text that a spreadsheet shows as it is.

    An apostrophe is added at the start of a text that a spreadsheet would change, and before each formula character
    within the text where a cell can start. Gnumeric removes an apostrophe at the start of a cell, others keep it.
    Therefore the text's own ones at the start are doubled: the text is known with and without the removed one.
    """
    text = UNPROTECTED.sub("'", text)
    bare = text.lstrip("'")
    is_changed = starts_changed_text(bare.lower()) is not None
    return "'" * (2 * (len(text) - len(bare)) + is_changed) + bare


def unprotect(text: str) -> str:
    """Return the text that `protect` has protected, also if a spreadsheet has removed the first apostrophe."""
    if "'" not in text:
        return text
    bare = text.lstrip("'")
    is_changed = starts_changed_text(bare.lower()) is not None
    return PROTECTED.sub("", "'" * ((len(text) - len(bare) + (not is_changed)) // 2) + bare)


def protect_formulas(text: str) -> str:
    """Return a text in which no cell starts with a formula, also if a spreadsheet splits it at another delimiter.

    Numbers and dates stay as they are. The text cannot be restored.
    """
    return BEFORE_FORMULA.sub(r"\g<0>'", text)
