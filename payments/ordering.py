"""The list's order, and a payment's place in it."""

from typing import TypeAlias

from django.db.models import BooleanField, Expression, F, Func
from django.db.models.expressions import BaseExpression

Order: TypeAlias = tuple[str, str]

NEWEST_FIRST: Order = ("-created_at", "-id")
OLDEST_FIRST: Order = ("created_at", "id")


def opposite(order: Order) -> Order:
    return OLDEST_FIRST if order == NEWEST_FIRST else NEWEST_FIRST


def place(created_at: BaseExpression | F, payment_id: BaseExpression | F) -> Expression:
    return Func(created_at, payment_id, template="(%(expressions)s)", arg_joiner=", ")


def is_at_or_behind(other: Expression, order: Order) -> Expression:
    return compared("<=" if order == NEWEST_FIRST else ">=", other)


def is_ahead_of(other: Expression, order: Order) -> Expression:
    return compared(">" if order == NEWEST_FIRST else "<", other)


def compared(operator: str, other: Expression) -> Expression:
    """Return `(created_at, id) <operator> other`, which both databases look up in the list's index.

    Django's own tuple lookups write it for SQLite as `a < x OR (a = x AND b <= y)`, which scans. So does SQLite where
    one subquery gives both values: hence the row of a subquery for the time, and the id that is known.
    """
    own = place(*map(F, OLDEST_FIRST))
    return Func(own, other, template="%(expressions)s", arg_joiner=f" {operator} ", output_field=BooleanField())
