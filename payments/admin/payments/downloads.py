"""Exports of the payment list, part by part: CSV for spreadsheets, JSON Lines as in `manage.py export_payments`."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from payments.export import export_line
from payments.ingest.formats.formulas import escape_formulas, may_contain_formulas
from payments.rows import COLUMN_INDEX, FIELDS, MONEY, RowValues

# The title of each column of a row: the field's name, and for money its part, such as amount.value.
TITLES = [title for field in FIELDS for title in field.titles]
AMOUNTS = {COLUMN_INDEX[field.name] for field in FIELDS if field.kind == MONEY}

# Excel reads a file as UTF-8 only if it starts with this mark.
BYTE_ORDER_MARK = "\ufeff"


class Format(NamedTuple):
    """A file format: its content type, the start of the file, and the function that writes rows."""

    content_type: str
    start: bytes
    write: Callable[[Sequence[RowValues]], bytes]


def write_json_lines(rows: Sequence[RowValues]) -> bytes:
    return b"".join(map(export_line, rows))


def write_csv(rows: Sequence[RowValues]) -> bytes:
    return csv_lines(map(csv_cells, rows))


def csv_lines(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def csv_cells(row: RowValues) -> list[str]:
    """Return a row's cells in the order of `TITLES`. Amounts stay numbers; other text cannot become a formula."""
    texts = [text or "" for text in row[: len(TITLES)]]
    if not may_contain_formulas(texts):
        return texts
    return [text if position in AMOUNTS else escape_formulas(text) for position, text in enumerate(texts)]


FORMATS = {
    "csv": Format("text/csv; charset=utf-8", BYTE_ORDER_MARK.encode() + csv_lines([TITLES]), write_csv),
    "jsonl": Format("application/jsonl", b"", write_json_lines),
}
