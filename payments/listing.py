"""What the holder of a key sees, or what was asked for of it, by statements that are compiled once."""

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

from django.db.models import QuerySet

from payments.database.statements import Slot, Statement
from payments.filters import EVERYTHING, Filter, Selection, Values
from payments.models import Access, Organization, Payment, PaymentQuerySet
from payments.rows import Row
from payments.runtime.process import process
from payments.runtime.servers import PRIMARY


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


# Gives a statement as it is, or, with `is_current=True`, one that finds nothing on a server that is behind.
Declaration: TypeAlias = Callable[..., Statement[Row]]


class Listing(NamedTuple):
    """The payments that a key sees, those of them that were asked for, in the order that was, read on a server."""

    access: Access
    selection: Selection = EVERYTHING
    using: str = PRIMARY
    revision: int | None = None  # of the organization's payments on the primary; needed to read a replica

    def rows(self, declare: Declaration, *, start: str | None = None) -> list[Row]:
        """Return what there is, from the payment of that id on, if one is named."""
        values = {"organization_id": self.access.organization_id, "mode": self.access.mode, "start": start}
        if self.selection.filters:
            values |= self.filter_values()
        if self.using == PRIMARY:
            return declare().rows(**values)
        rows = self.current_rows(declare, values)
        return self.known_rows(declare, values) if rows is None else rows

    def current_rows(self, declare: Declaration, values: dict[str, Any]) -> list[Row] | None:
        """Return what a replica has, if it has seen every change that the primary had when it was asked for the key.

        So a page of a replica's is the page that the primary would have given then, and pages of one walk may come
        from any server. What a replica does not find the primary is asked for; None is for when that is away.
        """
        if self.revision is None:
            return None
        statement = declare(is_current=True)
        timeout_opens = not self.selection.filters
        if rows := process.replica.run(
            lambda using: statement.rows(using, **values, revision=self.revision), timeout_opens=timeout_opens
        ):
            return rows
        process.hooks.replica_skipped("away" if process.replica.breaker.is_open else "not_found")
        return process.primary.run(lambda using: declare().rows(using, **values))

    def known_rows(self, declare: Declaration, values: dict[str, Any]) -> list[Row]:
        """Return what a replica has of a list while the primary is away, which alone can tell that there is no payment.

        :raises Error: that of the primary, where it would have to tell
        """
        rows = process.replica.run(lambda using: declare().rows(using, **values))
        if rows or (rows is not None and values["start"] is None):
            return rows
        return declare().rows(**values)

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


# The organization and mode of a statement are bound when it runs.
UNBOUND_ACCESS = Access(cast("int", Slot("organization_id")), cast("str", Slot("mode")))


def declared() -> PaymentQuerySet:
    """Return the payments of a key that is still to be named: where every statement for a `Listing` begins."""
    return Payment.objects.visible_to(UNBOUND_ACCESS)


def narrowed(payments: PaymentQuerySet, shape: Shape) -> PaymentQuerySet:
    for each in shape:
        payments = each.narrow(payments)
    return payments


def current() -> QuerySet[Organization, Any]:
    """Return the organization where it has the revision that is to be named: a server that is behind finds none."""
    return Organization.objects.filter(id=Slot("organization_id"), revision=Slot("revision")).values_list("id")


def find_payment(listing: Listing, payment_id: str) -> Row | None:
    """Return the payment of that id, if its key sees it."""
    rows = listing._replace(selection=EVERYTHING).rows(payment_statement, start=payment_id)
    return rows[0] if rows else None


@lru_cache
def payment_statement(*, is_current: bool = False) -> Statement[Row]:
    return Statement(declared().filter(id=Slot("start")).as_rows(), provided=current() if is_current else None)
