"""Protects spreadsheets from formulas in CSV files, and restores the texts.

A spreadsheet evaluates a cell that starts with one of these characters (OWASP, CSV injection). A cell can also start
within a text: after a semicolon or a tab, where some spreadsheets split lines, and after a line break if the text is
pasted. Some spreadsheets skip a tab or a line break at the start of a cell. The last four are full-width forms.
"""

import re
from collections.abc import Iterable

FORMULA = "=+\\-@\uff1d\uff0b\uff0d\uff20"

# The places of a text where a spreadsheet could see a formula, before and after an apostrophe has been added there.
UNESCAPED = re.compile(rf"\A(?='*[{FORMULA}\t\r\n])|(?<=[;\t\r\n])(?='*[{FORMULA}])")
ESCAPED = re.compile(rf"\A'(?='*[{FORMULA}\t\r\n])|(?<=[;\t\r\n])'(?='*[{FORMULA}])")

# Finds rows that may contain such a text; NUL precedes each cell. Searching each cell would take three times as long.
SUSPICIOUS_ROW = re.compile(rf"[\0;\t\r\n]'*[{FORMULA}\t\r\n]")


def may_contain_formulas(texts: Iterable[str]) -> bool:
    """Return whether one of the texts may need to be escaped. This is fast."""
    return SUSPICIOUS_ROW.search("\0".join(["", *texts])) is not None


def escape_formulas(text: str) -> str:
    """Return a text that a spreadsheet shows instead of evaluating it.

    One apostrophe is added at each place where a cell can start and a formula character follows, possibly after other
    apostrophes. A cell can start at the start of the text, where a tab or a line break counts as a formula character,
    and after each semicolon, tab and line break.
    """
    return UNESCAPED.sub("'", text)


def unescape_formulas(text: str) -> str:
    """Return the text that `escape_formulas` has escaped: without one apostrophe at each of these places."""
    return ESCAPED.sub("", text) if "'" in text else text
