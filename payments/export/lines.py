"""Exports payments as JSON Lines. Importing an export and exporting again gives identical bytes."""

from collections.abc import Iterable, Iterator

from payments.database.postgresql.planning import planned_as_pages
from payments.listing.feed import ChangesPage, fetch_changes
from payments.listing.tokens import FeedPosition
from payments.models import PaymentQuerySet
from payments.models.ordering import NEWEST_FIRST
from payments.record import encode
from payments.rows import RowValues, build_record, select_columns

CHUNK_ROWS = 2000


def export_payments(payments: PaymentQuerySet) -> Iterator[bytes]:
    """Yield the line of each payment, in the order of `read_rows`."""
    return map(export_line, read_rows(payments))


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


def write_json_lines(rows: Iterable[RowValues]) -> bytes:
    return b"".join(map(export_line, rows))
