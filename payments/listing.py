"""What the holder of a key sees, by statements that are compiled once."""

from functools import lru_cache
from typing import Any, NamedTuple

from payments.models import Access, Payment, PaymentQuerySet
from payments.rows import Row
from payments.statements import Slot, Statement


class Listing(NamedTuple):
    """The payments that a key sees."""

    access: Access

    def rows(self, statement: Statement[Row], **values: Any) -> list[Row]:
        return statement.rows(organization_id=self.access.organization_id, mode=self.access.mode, **values)


class OpenAccess(NamedTuple):
    """Whose payments and of which mode is said when a statement is run."""

    organization_id: Slot
    mode: Slot


def declared() -> PaymentQuerySet:
    """Return the payments of a key that is still to be named: where every statement for a `Listing` begins."""
    return Payment.objects.visible_to(OpenAccess(Slot("organization_id"), Slot("mode")))


def find_payment(listing: Listing, payment_id: str) -> Row | None:
    """Return the payment of that id, if `listing` holds it."""
    rows = listing.rows(payment_statement(), id=payment_id)
    return rows[0] if rows else None


@lru_cache
def payment_statement() -> Statement[Row]:
    return Statement(declared().filter(id=Slot("id")).as_rows())
