"""The payments that a list shows: those of an access, and of them those that match filters."""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

from payments.database.statements import Placeholder
from payments.listing.content import ContentStatement, Query, content_sql
from payments.listing.filter_types import Filter, Values
from payments.listing.filters import EVERYTHING, AppliedFilter, Selection
from payments.models import Access, Payment, PaymentQuerySet
from payments.models.ordering import NEWEST_FIRST

# The access of a statement is bound when the statement runs.
UNBOUND_ACCESS = Access(cast("int", Placeholder("organization_id")), cast("str", Placeholder("mode")))

# Cached QuerySets with filters, one for each shape.
SHAPES_MAX = 250


class UnboundPayments(PaymentQuerySet):
    """Payments of an access that is bound when a compiled statement runs: conditions have placeholders for values."""


@lru_cache
def visible_payments(*, hides: tuple[str, ...] = ()) -> UnboundPayments:
    """Return the payments of an access that is bound when the statement runs. Each statement starts here."""
    return cast("UnboundPayments", UnboundPayments(Payment).visible_to(UNBOUND_ACCESS, hides=hides))


def payments_by_value() -> UnboundPayments:
    """Return the same payments, which PostgreSQL does not find by their access but by another value, such as the ID.

    Without statistics, an access seems to have so few payments that PostgreSQL would read all of them.
    """
    return visible_payments(hides=("mode", "organization_id"))


def payments_of_list(filters: Sequence[AppliedFilter]) -> UnboundPayments:
    """Return the payments from which a list's filters select."""
    has_own_index = any(applied.filter.has_own_index for applied in filters)
    return payments_by_value() if has_own_index else visible_payments()


class FilterShape(NamedTuple):
    """The part of a filter that determines the SQL: the number of values or, for some filters, the values."""

    name: str
    filter: Filter
    value_count: int
    values: Values | None

    @property
    def placeholders(self) -> list[str]:
        name = re.sub(r"\W+", "_", self.name)
        return [f"{name}_{index}" for index in range(self.value_count)]


Shape: TypeAlias = tuple[FilterShape, ...]


def shape_of(filters: Sequence[AppliedFilter]) -> Shape:
    return tuple(
        FilterShape(name, filter_, len(values), values if filter_.values_are_literals else None)
        for name, filter_, values in filters
    )


def select(
    payments: PaymentQuerySet, filters: Sequence[AppliedFilter], *, access: Access | None = None
) -> PaymentQuerySet:
    """Return the payments that match all filters. For unbound payments, the result is cached by the filters' shape.

    For other payments, `access` is their organization and mode. It lets PostgreSQL use the index of terms.
    """
    if not filters:
        return payments
    if isinstance(payments, UnboundPayments):
        return select_unbound(payments, shape_of(filters))
    for applied in filters:
        payments = applied.filter.apply(payments, applied.values, access)
    return payments


@lru_cache(SHAPES_MAX)
def select_unbound(payments: PaymentQuerySet, shape: Shape, access: Access | None = UNBOUND_ACCESS) -> PaymentQuerySet:
    """Return the payments that match all filters. Without `access`, PostgreSQL uses no index of terms."""
    for part in shape:
        values = part.values or tuple(map(Placeholder, part.placeholders))
        payments = part.filter.apply(payments, values, access)
    return payments


def filter_values(filters: Sequence[AppliedFilter]) -> dict[str, str]:
    return {
        # Both databases compare a time in UTC, without an offset, with a column.
        placeholder: str(value.replace(tzinfo=None) if isinstance(value, datetime) else value)
        for shape, applied in zip(shape_of(filters), filters, strict=True)
        for placeholder, value in zip(shape.placeholders, applied.values, strict=True)
    }


class Listing(NamedTuple):
    """A list of payments: the access, the filters and the order."""

    access: Access
    selection: Selection = EVERYTHING


@lru_cache
def payment_statement() -> ContentStatement:
    return ContentStatement(content_sql(payments_by_value().filter(id=Placeholder("start"))))


@lru_cache
def newest_payment_query() -> Query:
    """Return the query for the newest payment: the cheapest read of a list."""
    return Query(ContentStatement(content_sql(visible_payments().order_by(*NEWEST_FIRST), limit=1)), {})


def payment_query(payment_id: str) -> Query:
    return Query(payment_statement(), {"start": payment_id}, has_start=True)
