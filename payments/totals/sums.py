"""The sums of `Total` in SQL: one statement for the payments of days and for those of a list."""

from collections.abc import Sequence
from typing import Any

from django.db.models import BigIntegerField, Case, Expression, F, Func, Q, When
from django.db.models.functions import Cast

from payments.database.statements import compile_queryset
from payments.models import PaymentQuerySet
from payments.totals.figures import Total

GROUP_COLUMNS = ("amount_currency", "status", "method")

SUMS = """
    SELECT {columns}, COUNT(*), SUM(amount_), COUNT(net_), COALESCE(SUM(net_), 0), COALESCE(SUM(amount_ - net_), 0),
        COUNT(remaining_), COALESCE(SUM(amount_ - remaining_), 0)
    FROM ({payments}) AS payments GROUP BY {columns} ORDER BY {columns}
"""


def sums_sql(payments: PaymentQuerySet, **columns: Expression) -> str:
    """Return the SQL for the sums of unbound payments, by `columns`, currency, status and method."""
    amounts = hundredths()
    rows = payments.annotate(**columns, **amounts).values_list(*columns, *GROUP_COLUMNS, *amounts)
    names = ", ".join([*columns, *GROUP_COLUMNS])
    return SUMS.format(columns=names, payments=compile_queryset(rows, is_read_by_sql=True))


def hundredths() -> dict[str, Expression]:
    """Return the amount, the net amount and the remaining amount in hundredths; null in another currency.

    They are integers, because SQLite adds decimals as binary floating-point numbers.
    """
    amount, net, remaining = (
        Cast(Func(F(money), template="ROUND(%(expressions)s * 100)"), BigIntegerField())
        for money in ("amount", "amount_net", "amount_remaining")
    )
    has_net, has_remaining = (
        Q(**{f"{money}_currency": F("amount_currency")}) for money in ("amount_net", "amount_remaining")
    )
    return {
        "amount_": amount,
        "net_": Case(When(has_net, then=net)),
        "remaining_": Case(When(has_remaining, then=remaining)),
    }


def total_of(row: Sequence[Any]) -> Total:
    return Total._make([*row[:3], *map(int, row[3:])])
