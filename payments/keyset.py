"""The list's order, and a payment's place in it."""

from django.db.models import BooleanField, Expression, F, Func
from django.db.models.expressions import BaseExpression

PLACE = ("created_at", "id")
NEWEST_FIRST = ("-created_at", "-id")


def place(created_at: BaseExpression | F, payment_id: BaseExpression | F) -> Expression:
    return Func(created_at, payment_id, template="(%(expressions)s)", arg_joiner=", ")


def compared(operator: str, other: Expression) -> Expression:
    """Return `(created_at, id) <operator> other`, which both databases look up in the list's index.

    Django's own tuple lookups write it for SQLite as `a < x OR (a = x AND b <= y)`, which scans. So does SQLite where
    one subquery gives both values: hence the row of a subquery for the time, and the id that is known.
    """
    own = place(*map(F, PLACE))
    return Func(own, other, template="%(expressions)s", arg_joiner=f" {operator} ", output_field=BooleanField())
