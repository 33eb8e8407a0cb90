"""CSV files that an import reads: the columns have the names of the API, and spreadsheets do not change the texts."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from payments.export.lines import write_json_lines
from payments.ingest.formats.spreadsheets import may_need_protection, protect
from payments.record import FREE_TEXT_TYPES, DetailsDocument, Metadata, Method, OrganizationId
from payments.rows import COLUMN_INDEX, FIELDS, RowValues

# The title of each column of a row: the field's name, and for money its part, such as amount.value.
TITLES = [title for field in FIELDS for title in field.titles]
# The positions of the columns whose texts a spreadsheet may change. Amounts and times stay numbers and times.
TEXT_TYPES = (*FREE_TEXT_TYPES, Method, OrganizationId, Metadata, DetailsDocument)
TEXTS = [COLUMN_INDEX[field.name] for field in FIELDS if field.type in TEXT_TYPES]
select_texts = itemgetter(*TEXTS)

CSV_TYPE = "text/csv; charset=utf-8"
# Excel reads a file as UTF-8 only if it starts with this mark.
BYTE_ORDER_MARK = "\ufeff".encode()


class Format(NamedTuple):
    """A file format: its content type, the start of the file, and the functions that write rows and the end."""

    content_type: str
    start: bytes
    write: Callable[[Iterable[RowValues]], bytes]
    end: Callable[[], bytes] = bytes


def write_csv(rows: Iterable[RowValues]) -> bytes:
    return csv_lines(map(csv_cells, rows))


def csv_lines(rows: Iterable[Sequence[str]], *, delimiter: str = ",") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode()


def csv_cells(row: RowValues) -> list[str]:
    """Return a row's cells in the order of `TITLES`, their texts protected from spreadsheets."""
    cells = [text or "" for text in row[: len(TITLES)]]
    if may_need_protection(select_texts(cells)):
        for position in TEXTS:
            cells[position] = protect(cells[position])
    return cells


FORMATS = {
    "jsonl": Format("application/jsonl", b"", write_json_lines),
    "csv": Format(CSV_TYPE, BYTE_ORDER_MARK + csv_lines([TITLES]), write_csv),
}
