"""Reads CSV files: the first row names the members of a record with dots (`amount.value`), each other row is a record.

A row becomes the JSON of a record, so the rules of a record apply to it. An empty cell means that the member is absent;
only `description` may be an empty text. `metadata` and `details` are a JSON object in one column, or one column for
each member (`metadata.order`). The export to CSV protects spreadsheets from formulas; this module removes exactly this
protection.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from payments.formulas import unescape_formulas
from payments.ingest.errors import InvalidRecord, printable_names
from payments.ingest.forms import MONEY_MEMBERS, RECORD_MEMBERS
from payments.ingest.input_types import IGNORED
from payments.ingest.sources import VALUE_BYTES_MAX, Location, RawRecord, UnreadableSource, split_lines
from payments.record import Money, encode
from payments.rows import FIELDS

# Spreadsheets write a semicolon where the comma separates decimals.
DELIMITERS: Final = (",", ";", "\t")

DOCUMENTS: Final = ("metadata", "details")
MONEY: Final = frozenset(field.json_name for field in FIELDS if field.type == Money)
ORDER: Final = {member.json_name: position for position, member in enumerate(RECORD_MEMBERS)}

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


@dataclass(frozen=True)
class Header:
    """The names in the first row of a CSV file, and the character between its cells."""

    names: list[str]
    delimiter: str

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Return the number of each column by its name, as spreadsheets count."""
        return {name: number for number, name in enumerate(self.names, start=1)}

    @cached_property
    def columns(self) -> list[Column]:
        """Return the columns in the order of the record's members, the unknown ones last."""
        columns = [Column(*split_name(name), position) for position, name in enumerate(self.names)]
        return sorted(
            (column for column in columns if column.member not in IGNORED.values()),
            key=lambda column: ORDER.get(column.member, len(ORDER)),
        )

    def problems(self, *, ignores_unknown_fields: bool) -> Iterator[str]:
        """Yield why the rows under this header cannot be records."""
        if repeated := [name for name in self.numbers if self.names.count(name) > 1]:
            yield f"columns occur more than once: {printable_names(repeated)}"
        if missing := [name for name in REQUIRED if name not in self.numbers]:
            yield f"columns are missing: {printable_names(missing)}"
        for member in DOCUMENTS:
            if member in self.numbers and any(name.startswith(f"{member}.") for name in self.names):
                yield f"{member} must be one column or several, not both"
        unknown = [name for name in self.names if not is_known(*split_name(name))]
        if unknown and not ignores_unknown_fields:
            yield f"columns are unknown: {printable_names(unknown)}; --ignore-unknown-fields skips them"


def split_name(name: str) -> tuple[str, str]:
    """Return the member that a column belongs to, and the name within this member: `amount` and `value`."""
    member, _, inner = name.partition(".")
    return member, inner


def is_known(member: str, inner: str) -> bool:
    if member in IGNORED.values() or member in DOCUMENTS:
        return True
    if member in MONEY:
        return inner in {part.json_name for part in MONEY_MEMBERS}
    return member in ORDER and not inner


def find_header(line: bytes) -> Header | None:
    """Return the header in the first line of a file; None if it has no column `id`."""
    for delimiter in DELIMITERS:
        try:
            [names] = csv.reader([line.decode()], delimiter=delimiter, strict=True)
        except (UnicodeDecodeError, ValueError, csv.Error):
            continue
        if "id" in names and len(names) > 1:
            return Header(names, delimiter)
    return None


def read_rows(
    name: str, chunks: Iterator[bytes], header: Header, *, ignores_unknown_fields: bool
) -> Iterator[RawRecord]:
    """Yield the rows of a CSV file as records in JSON. Empty rows are skipped.

    :raises UnreadableSource: the header is invalid, or a row cannot be split into cells
    """
    if problems := list(header.problems(ignores_unknown_fields=ignores_unknown_fields)):
        raise UnreadableSource(Location(name, 1), "; ".join(problems))
    rows = split_rows(name, chunks, header)
    next(rows)  # the header
    for location, cells in rows:
        yield raw_record(location, cells, header)


def split_rows(name: str, chunks: Iterator[bytes], header: Header) -> Iterator[tuple[Location, list[str]]]:
    """Yield the rows that are not empty."""
    csv.field_size_limit(VALUE_BYTES_MAX)
    # Bytes that are not UTF-8 become lone surrogates, which cannot be encoded later.
    lines = (line.decode(errors="surrogateescape") + "\n" for line in split_lines(name, chunks))
    rows = csv.reader(lines, delimiter=header.delimiter, strict=True)
    while True:
        location = Location(name, rows.line_num + 1, columns=header.numbers)
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise UnreadableSource(location, f"this row is not CSV: {error}") from None
        if any(cells):
            yield location, cells


def raw_record(location: Location, cells: list[str], header: Header) -> RawRecord:
    if len(cells) != len(header.names):
        reason = f"has {len(cells)} cells, but the first line has {len(header.names)}"
        return RawRecord(location, b"", InvalidRecord.of(None, reason))
    try:
        return RawRecord(location, encode(record_of(cells, header)))
    except UnicodeEncodeError:
        [name, *_] = [name for name, cell in zip(header.names, cells, strict=True) if not is_utf_8(cell)]
        return RawRecord(location, b"", InvalidRecord.of(name, "is not UTF-8"))


def record_of(cells: list[str], header: Header) -> dict[str, Any]:
    """Return the record of a row as JSON data."""
    record: dict[str, Any] = {}
    for column in header.columns:
        cell = unescape_formulas(cells[column.position])
        if not cell and column.member != "description":
            continue
        if column.is_document:
            record[column.member] = document(cell)
        elif column.inner and is_known(column.member, column.inner):
            record.setdefault(column.member, {})[column.inner] = cell
        else:
            record[".".join(filter(None, (column.member, column.inner)))] = cell
    return {"metadata": {}, **record} if "metadata" not in record else record


def document(cell: str) -> Raw | str:
    """Return a JSON document. Any other text stays a text, which the validation refuses."""
    text = cell.encode()
    try:
        msgspec.json.decode(text, type=Raw)
    except (msgspec.DecodeError, RecursionError):
        return cell
    return Raw(text)


def is_utf_8(cell: str) -> bool:
    try:
        cell.encode()
    except UnicodeEncodeError:
        return False
    return True
