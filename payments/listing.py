"""What the holder of a key sees, or what was asked for of it, by statements that are compiled once."""

import re
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from payments.filters import EVERYTHING, Filter, Selection, Values
from payments.models import Access, Payment, PaymentQuerySet
from payments.rows import Row
from payments.statements import Slot, Statement


class FilterShape(NamedTuple):
    """A filter, all that a statement has of it: how many values there are, or, where that matters, which."""

    name: str
    filter: Filter
    number: int
    values: Values | None

    @property
    def slots(self) -> list[str]:
        name = re.sub(r"\W+", "_", self.name)
        return [f"{name}_{place}" for place in range(self.number)]

    def narrow(self, payments: PaymentQuerySet) -> PaymentQuerySet:
        return self.filter.narrow(payments, self.values or tuple(map(Slot, self.slots)))


Shape: TypeAlias = tuple[FilterShape, ...]


class Listing(NamedTuple):
    """The payments that a key sees, those of them that were asked for, in the order that was."""

    access: Access
    selection: Selection = EVERYTHING

    def rows(self, statement: Statement[Row], **values: Any) -> list[Row]:
        if self.selection.filters:
            values |= self.filter_values()
        return statement.rows(organization_id=self.access.organization_id, mode=self.access.mode, **values)

    def filter_values(self) -> dict[str, str]:
        return {
            slot: stored(value)
            for shape, given in zip(self.shape, self.selection.filters, strict=True)
            for slot, value in zip(shape.slots, given.values, strict=True)
        }

    @property
    def shape(self) -> Shape:
        if not self.selection.filters:
            return ()
        return tuple(
            FilterShape(name, each, len(values), values if each.chooses_index else None)
            for name, each, values in self.selection.filters
        )


def stored(value: Any) -> str:
    """Return a value as both databases compare it with a column's: a moment in UTC without saying so."""
    return str(value.replace(tzinfo=None) if isinstance(value, datetime) else value)


class OpenAccess(NamedTuple):
    """Whose payments and of which mode is said when a statement is run."""

    organization_id: Slot
    mode: Slot


def declared() -> PaymentQuerySet:
    """Return the payments of a key that is still to be named: where every statement for a `Listing` begins."""
    return Payment.objects.visible_to(OpenAccess(Slot("organization_id"), Slot("mode")))


def narrowed(payments: PaymentQuerySet, shape: Shape) -> PaymentQuerySet:
    for each in shape:
        payments = each.narrow(payments)
    return payments


def find_payment(listing: Listing, payment_id: str) -> Row | None:
    """Return the payment of that id, if its key sees it."""
    rows = Listing(listing.access).rows(payment_statement(), id=payment_id)
    return rows[0] if rows else None


@lru_cache
def payment_statement() -> Statement[Row]:
    return Statement(declared().filter(id=Slot("id")).as_rows())
