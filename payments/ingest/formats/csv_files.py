"""Reads CSV files: the first row names the members of a record with dots (`amount.value`), each other row is a record.

A row becomes the JSON of a record, so the rules of a record apply to it. Only amounts are converted first: to two
decimals. An empty cell means that the member is absent; only `description` may be an empty text. `metadata` and
`details` are a JSON object in one column, or one column for each member (`metadata.order`). The export to CSV protects
texts from spreadsheets; this module removes exactly this protection.
"""

import csv
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from payments.ingest.errors import InvalidRecord, unreadable
from payments.ingest.formats.csv_headers import Column, Header, is_utf_8
from payments.ingest.formats.sources import (
    RAW_BYTES_MAX,
    InvalidHeader,
    Location,
    RawRecord,
    UnreadableSource,
    refuse_oversize,
    split_lines,
)
from payments.ingest.formats.spreadsheets import unprotect
from payments.record import encode

NOT_CSV = "this row is not CSV. Close each quotation mark, and double those within a cell. Lines must end in LF or CRLF"
NOT_UTF_8 = "is not UTF-8. Save the file as UTF-8"

# A decimal of two places. Where a comma may separate the decimals, three digits after it or a point may be thousands,
# but not after a zero.
DECIMAL = re.compile(r"(-?[0-9]+)(?:\.([0-9]{1,2})0*)?")
DECIMAL_BESIDE_SEMICOLONS = re.compile(r"(-?0(?=[.,])|-?[0-9]+(?![.,][0-9]{3}\Z))(?:[.,]([0-9]{1,2})0*)?")


def read_rows(
    name: str, chunks: Iterator[bytes], *, delimiter: str, ignores_unknown_fields: bool
) -> Iterator[RawRecord]:
    """Yield the rows of a CSV file as records in JSON. Empty rows are skipped.

    :raises InvalidHeader: the header is invalid
    :raises UnreadableSource: a row cannot be split into cells
    """
    rows = split_rows(name, chunks, delimiter)
    header_line, cells = next(rows)
    header = Header(cells, delimiter)
    if problems := list(header.problems(ignores_unknown_fields=ignores_unknown_fields)):
        raise InvalidHeader(Location(name, header_line), "; ".join(problems))
    for line, cells in rows:
        yield raw_record(Location(name, line, columns=header.numbers), cells, header)


def split_rows(name: str, chunks: Iterator[bytes], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty or lines of dashes, each with the line on which it begins."""
    row_line, row_bytes = 1, 0  # where the current row begins, and the length of its lines so far

    def read_lines() -> Iterator[str]:
        """Yield the lines. Those of one row must not fill the memory: a quotation mark may never be closed."""
        nonlocal row_bytes
        for line in split_lines(name, chunks, bytes_max=RAW_BYTES_MAX):
            row_bytes += len(line) + 1
            refuse_oversize(row_bytes, Location(name, row_line), bytes_max=RAW_BYTES_MAX)
            # Bytes that are not UTF-8 become lone surrogates, which cannot be encoded later.
            yield line.decode(errors="surrogateescape") + "\n"

    csv.field_size_limit(RAW_BYTES_MAX)
    rows = csv.reader(read_lines(), delimiter=delimiter, strict=True)
    while True:
        row_line, row_bytes = rows.line_num + 1, 0
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error:
            raise UnreadableSource(Location(name, row_line), NOT_CSV) from None
        if any(cell.strip("- ") for cell in cells):
            yield row_line, cells


def raw_record(location: Location, cells: list[str], header: Header) -> RawRecord:
    names = header.names
    if len(cells) != len(names):
        return invalid_row(location, None, f"has {len(cells)} cells, but the first line has {len(names)}")
    if cells[-1] == header.cells[-1] and [cells[0].removeprefix("\ufeff"), *cells[1:]] == header.cells:
        return invalid_row(location, None, "repeats the first line. Remove it")
    ignored = sum(1 for position in header.unknown_positions if cells[position])
    try:
        return RawRecord(location, encode(record_of(cells, header)), ignored=ignored)
    except UnicodeEncodeError:
        [name, *_] = [name for name, cell in zip(names, cells, strict=True) if not is_utf_8(cell)]
        return invalid_row(location, name, NOT_UTF_8)
    except Exception as bug:  # noqa: BLE001
        return RawRecord(location, b"", unreadable(bug))


def invalid_row(location: Location, field: str | None, reason: str) -> RawRecord:
    return RawRecord(location, b"", InvalidRecord.of(field, reason))


def record_of(cells: list[str], header: Header) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for column in header.columns:
        cell = unprotect(cells[column.position])
        if cell or column.member == "description":
            add(record, column, cell, delimiter=header.delimiter)
        elif column.is_required_part:
            record.setdefault(column.member, {})  # so that the error names the part, which has a column
    return {"metadata": {}, **record} if "metadata" not in record else record


def add(record: dict[str, Any], column: Column, cell: str, *, delimiter: str) -> None:
    if column.is_document:
        record[column.member] = decode_document(cell)
    elif column.inner:
        if column.is_value and cell[-3:-2] != ".":
            cell = two_places(cell, delimiter=delimiter)
        record.setdefault(column.member, {})[column.inner] = cell
    else:
        record[column.member] = cell


def two_places(text: str, *, delimiter: str) -> str:
    """Return an amount with two decimals. Any other text stays as it is; the validation refuses it."""
    match = (DECIMAL_BESIDE_SEMICOLONS if delimiter == ";" else DECIMAL).fullmatch(text)
    return f"{match[1]}.{match[2] or '':0<2}" if match else text


def decode_document(cell: str) -> Raw | str:
    """Return a JSON document. Any other text stays a text, which the validation refuses."""
    text = cell.encode()
    try:
        msgspec.json.decode(text, type=Raw)
    except (msgspec.DecodeError, RecursionError):
        return cell
    return Raw(text)
