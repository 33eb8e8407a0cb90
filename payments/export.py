"""Exports payments as JSON Lines. Importing an export and exporting again gives identical bytes."""

from collections.abc import Iterator

from payments.database.postgresql.planning import planned_as_pages
from payments.listing.feed import ChangesPage, fetch_changes
from payments.listing.tokens import FeedPosition
from payments.models import PaymentQuerySet
from payments.models.ordering import NEWEST_FIRST
from payments.record import encode
from payments.rows import RowValues, build_record, select_columns

CHUNK_ROWS = 2000


def export_payments(payments: PaymentQuerySet) -> Iterator[bytes]:
    """Yield one line for each payment, by organization and mode, newest first. Memory use is constant."""
    ordered = payments.order_by("organization_id", "mode", *NEWEST_FIRST)
    for row in select_columns(ordered).iterator(chunk_size=CHUNK_ROWS):
        yield export_line(row)


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
