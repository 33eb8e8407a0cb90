"""The header of a CSV file: the names of its columns, and their errors."""

import csv
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from payments.ingest.errors import printable_names
from payments.ingest.members import RECORD_MEMBERS
from payments.ingest.schema import IGNORED
from payments.rows import FIELDS

# Spreadsheets write a semicolon where the comma separates decimals.
DELIMITERS: Final = (",", ";", "\t")

DOCUMENTS: Final = ("metadata", "details")
ORDER: Final = {member.json_name: position for position, member in enumerate(RECORD_MEMBERS)}

# The names of columns, by their form in lower case.
TITLES: Final = {title.lower(): title for field in FIELDS for title in (*field.titles, *IGNORED.values())}

# Characters around a name that a person does not see.
INVISIBLE: Final = " \t\r\n\xa0\u200b\u202f\ufeff"

# The columns of members that every record has. A record without metadata columns has no metadata.
REQUIRED: Final = [
    title
    for field, member in zip(FIELDS, RECORD_MEMBERS, strict=True)
    for title in field.titles
    if member.is_required and member.json_name != "metadata"
]


class Column(NamedTuple):
    """A column: the member of the record, the member within it, and its position in a row."""

    member: str
    inner: str
    position: int

    @property
    def is_document(self) -> bool:
        return self.member in DOCUMENTS and not self.inner

    @property
    def is_value(self) -> bool:
        return self.inner == "value" and self.member not in DOCUMENTS

    @property
    def is_required_part(self) -> bool:
        """Return whether the column is a part of an object that every record has, such as `amount.value`."""
        return bool(self.inner) and f"{self.member}.{self.inner}" in REQUIRED


@dataclass(frozen=True)
class Header:
    """The first row of a CSV file, and the character between its cells."""

    cells: list[str]
    delimiter: str

    @cached_property
    def names(self) -> list[str]:
        """Return the names of the columns as a record spells them. A column with exactly this name takes precedence."""
        exact = {cell.strip(INVISIBLE) for cell in self.cells}
        return [spelling(cell, exact=exact) for cell in self.cells]

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Return the number of each column by its name, as spreadsheets count."""
        return {name: number for number, name in enumerate(self.names, start=1)}

    @cached_property
    def columns(self) -> list[Column]:
        columns = (
            Column(*name.partition(".")[::2], position)
            for position, name in enumerate(self.names)
            if is_known(name) and name.partition(".")[0] not in IGNORED.values()
        )
        return sorted(columns, key=lambda column: ORDER[column.member])

    @cached_property
    def unknown_positions(self) -> list[int]:
        return [position for position, name in enumerate(self.names) if not is_known(name)]

    def problems(self, *, ignores_unknown_fields: bool) -> Iterator[str]:
        """Yield why the rows under this header cannot be records."""
        if not all(map(is_utf_8, self.names)):
            yield "the names of the columns are not UTF-8. Save the file as UTF-8"
            return
        if repeated := [name for name, count in Counter(filter(is_known, self.names)).items() if count > 1]:
            yield f"columns occur more than once: {printable_names(repeated)}"
        if missing := [name for name in REQUIRED if name not in self.numbers]:
            yield f"columns are missing: {printable_names(missing)}"
        for member in DOCUMENTS:
            if member in self.numbers and any(name.startswith(f"{member}.") for name in self.names):
                yield f"{member} must be one column or several, not both"
        if self.unknown_positions and not ignores_unknown_fields:
            yield from self.unknown()

    def unknown(self) -> Iterator[str]:
        if names := [self.names[position] for position in self.unknown_positions if self.names[position]]:
            yield f"columns are unknown: {printable_names(names)}; --ignore-unknown-fields skips them"
        if numbers := [f"{position + 1}" for position in self.unknown_positions if not self.names[position]]:
            yield f"columns have no name: {printable_names(numbers)}; --ignore-unknown-fields skips them"


def spelling(cell: str, *, exact: Collection[str] = ()) -> str:
    """Return the name of a column as a record spells it, such as `amount.value`, unless `exact` has this name."""
    name = cell.strip(INVISIBLE)
    member, point, inner = name.partition(".")
    spelled = TITLES.get(name.lower(), f"{TITLES.get(member.lower(), member)}{point}{inner}")
    return name if spelled in exact else spelled


def is_known(name: str) -> bool:
    member, _, inner = name.partition(".")
    return name in TITLES.values() or (bool(inner) and member in (*DOCUMENTS, *IGNORED.values()))


def find_delimiter(line: str) -> str | None:
    """Return the character between the cells of a header that has a column `id`; None for any other line."""
    return next((mark for mark in DELIMITERS if "id" in map(spelling, split_line(line, mark))), None)


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line, as far as it can be split."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def is_utf_8(text: str) -> bool:
    """Return whether a text has no lone surrogates, which stand for bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
