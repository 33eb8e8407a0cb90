"""Files of payments: JSON Lines and CSV. Importing a file and exporting again gives identical bytes.

The columns of CSV have the names of the API, and spreadsheets do not change its texts.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from payments.database.postgresql.planning import planned_as_pages
from payments.ingest.formats.spreadsheets import may_need_protection, protect
from payments.listing.feed import ChangesPage, fetch_changes
from payments.listing.tokens import FeedPosition
from payments.models import PaymentQuerySet
from payments.models.ordering import NEWEST_FIRST
from payments.record import FREE_TEXT_TYPES, DetailsDocument, Metadata, Method, OrganizationId, encode
from payments.rows import COLUMN_INDEX, FIELDS, RowValues, build_record, select_columns

CHUNK_ROWS = 2000

# The title of each column of a row: the field's name, and for money its part, such as amount.value.
TITLES = [title for field in FIELDS for title in field.titles]
# The positions of the columns whose texts a spreadsheet may change. Amounts and times stay numbers and times.
TEXT_TYPES = (*FREE_TEXT_TYPES, Method, OrganizationId, Metadata, DetailsDocument)
TEXTS = [COLUMN_INDEX[field.name] for field in FIELDS if field.type in TEXT_TYPES]
select_texts = itemgetter(*TEXTS)

CSV_TYPE = "text/csv; charset=utf-8"
# Excel reads a file as UTF-8 only if it starts with this mark.
BYTE_ORDER_MARK = "\ufeff".encode()


def read_rows(payments: PaymentQuerySet) -> Iterator[RowValues]:
    """Yield the row of each payment, by organization and mode, newest first. Memory use is constant."""
    ordered = payments.order_by("organization_id", "mode", *NEWEST_FIRST)
    return select_columns(ordered).iterator(chunk_size=CHUNK_ROWS)


def read_changes(position: FeedPosition) -> Iterator[ChangesPage]:
    """Yield the pages of the change feed from a position to its end.

    :raises UnknownPosition: the database does not know the position
    """
    has_next = True
    with planned_as_pages():
        while has_next:
            page = fetch_changes(position, limit=CHUNK_ROWS)
            yield page
            position, has_next = page.later, page.has_next


def export_line(row: RowValues) -> bytes:
    return bytes(encode(build_record(row)) + b"\n")


class Format(NamedTuple):
    """A file format: its content type, the start of the file, and the functions that write rows and the end."""

    content_type: str
    start: bytes
    write: Callable[[Iterable[RowValues]], bytes]
    end: Callable[[], bytes] = bytes


def write_csv(rows: Iterable[RowValues]) -> bytes:
    return csv_lines(map(csv_cells, rows))


def csv_lines(rows: Iterable[Sequence[object]], *, delimiter: str = ",") -> bytes:
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
    "jsonl": Format("application/jsonl", b"", lambda rows: b"".join(map(export_line, rows))),
    "csv": Format(CSV_TYPE, BYTE_ORDER_MARK + csv_lines([TITLES]), write_csv),
}
