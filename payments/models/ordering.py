"""The order of the list, and comparisons of positions in it."""

from typing import TypeAlias

from django.db.models import Expression, F, Func, Lookup, TextField
from django.db.models.expressions import BaseExpression
from django.db.models.lookups import GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual

Order: TypeAlias = tuple[str, str]

NEWEST_FIRST: Order = ("-created_at", "-id")
OLDEST_FIRST: Order = ("created_at", "id")


def opposite(order: Order) -> Order:
    return OLDEST_FIRST if order == NEWEST_FIRST else NEWEST_FIRST


def sort_sql(order: Order) -> str:
    """Return an order in SQL: `created_at DESC, id DESC`."""
    return ", ".join(f"{name[1:]} DESC" if name.startswith("-") else name for name in order)


def position(created_at: BaseExpression | F, payment_id: BaseExpression | F) -> Expression:
    """Return the position of a payment: the row value `(created_at, id)`. Django has no field for it."""
    return Func(created_at, payment_id, template="(%(expressions)s)", arg_joiner=", ", output_field=TextField())


def is_at_or_after(other: Expression, order: Order) -> Lookup:
    """Return the condition that a payment is at the position `other` or after it."""
    return compare(LessThanOrEqual if order == NEWEST_FIRST else GreaterThanOrEqual, other)


def is_before(other: Expression, order: Order) -> Lookup:
    """Return the condition that a payment is before the position `other`."""
    return compare(GreaterThan if order == NEWEST_FIRST else LessThan, other)


def compare(lookup: type[Lookup], other: Expression) -> Lookup:
    """Return a condition such as `(created_at, id) < other`, which both databases look up in the list's index.

    Django's tuple lookups become `a < x OR (a = x AND b <= y)` on SQLite, which scans the table. SQLite also scans it
    if one subquery returns both values of `other`. So `other` has a subquery for the time, and the ID as a value.
    """
    return lookup(position(*map(F, OLDEST_FIRST)), other)
