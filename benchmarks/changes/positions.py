"""Positions in the feed, usually of the large organization."""

from msgspec.structs import replace

from benchmarks.dataset import LARGE, MODE, SMALL
from benchmarks.growth.tables import execute
from payments.changes import fetch_end
from payments.listing import Listing
from payments.models import Access
from payments.tokens import Position

ACCESS = Access(LARGE.id, MODE)
LISTING = Listing(ACCESS)
BEGINNING = Position(*ACCESS)
BEGINNING_WITHOUT_PAYMENTS = Position(SMALL.id + 1, MODE)


def count_payments() -> int:
    [(count,)] = execute("SELECT count(*) FROM payments_payment WHERE organization_id = %s AND mode = %s", [*ACCESS])
    return int(count)


def find_end() -> Position:
    return fetch_end(LISTING).later


def find_middle() -> Position:
    return position_after(count_payments() // 2)


def find_last_page(limit: int) -> Position:
    """Return the position after which there are exactly `limit` payments."""
    return position_after(count_payments() - limit)


def position_after(count: int) -> Position:
    """Return the position after so many payments of the feed."""
    [(number, payment_id)] = execute(
        "SELECT COALESCE(change.number, 0), payment.id FROM payments_payment AS payment "
        "LEFT JOIN payments_change AS change USING (organization_id, mode, change_id) "
        "WHERE organization_id = %s AND mode = %s ORDER BY 1, 2 OFFSET %s LIMIT 1",
        [*ACCESS, count - 1],
    )
    return replace(find_end(), number=number, after=payment_id)
