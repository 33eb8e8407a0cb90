"""The corpus of card data, and of harmless details that resemble it: tests/corpus/card_data."""

import re
from typing import Any, NamedTuple

from tests.support.corpus import DIRECTORY
from tests.support.lines import line

CASE = re.compile(r'\{"why": "(.+?)", "details": (.+)\}')


class Case(NamedTuple):
    """One line of the corpus. The details stay as they are written there, for example with escapes."""

    why: str
    details: str

    def line(self, **changes: Any) -> bytes:
        """Return a line of an import with these details."""
        return line(details="@", **changes).replace(b'"@"', self.details.encode())


def read_cases(name: str) -> list[Case]:
    """Return the cases of a file: `refused` or `accepted`.

    :raises ValueError: a line is not a case
    """
    return [parse_case(text) for text in (DIRECTORY / "card_data" / f"{name}.jsonl").read_text().splitlines()]


def parse_case(text: str) -> Case:
    match = CASE.fullmatch(text)
    if match is None:
        raise ValueError(f"Not a case: {text}")
    return Case(*match.groups())
