"""Pages whose filters bound `paidAt` to few days. The index `payment_paid` has the payments of a day by their creation.

On PostgreSQL, such a page is read from up to three sources, each only if those before have too few payments:

1. The list, from the position of the page or the first payment of the days. Its next payments often match.
2. The payments of each day.
3. What the page would read otherwise, instead of the days: if few of their payments match the other filters.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from django.db import connection
from django.db.models import BooleanField, DateField, DateTimeField, F, Func, Lookup
from django.db.models.expressions import RawSQL
from django.db.models.lookups import Exact, GreaterThanOrEqual, LessThanOrEqual

from payments.database.statements import compile_queryset
from payments.database.workers import uses_citus
from payments.listing.filters import LOWER, RANGES, UPPER, AppliedFilter
from payments.listing.query import payments_by_value, select_unbound, shape_of, visible_payments
from payments.models import PaymentQuerySet, Status
from payments.models.expressions import Day
from payments.models.ordering import NEWEST_FIRST, Order, sort_sql

BOUNDS = [[f"paidAt[{bound}]" for bound in bounds] for bounds in (LOWER, UPPER)]
SPAN_MAX = timedelta(days=31, hours=1)  # a month in which summer time ends
LISTED_PER_ROW = 30  # payments that the first source reads

# Filters by words that are frequent or rare. They are frequent if so many payments of a sample of each day match.
WORDS = frozenset({"method", "currency", "sequenceType"})
SAMPLE, FREQUENT = 100, 3

SOURCES = """
    WITH near AS MATERIALIZED ({near}),
    rest(is_by_day) AS MATERIALIZED (SELECT CASE WHEN (SELECT count(*) FROM near) < {rows} THEN {is_frequent} END)
    SELECT id FROM near
    UNION ALL (
        SELECT paid.id FROM {days} CROSS JOIN LATERAL ({paid}) AS paid WHERE (SELECT is_by_day FROM rest)
        ORDER BY {order} LIMIT {rows}
    )
"""
OTHERWISE = "UNION ALL SELECT id FROM ({page}) AS page WHERE NOT (SELECT is_by_day FROM rest)"
IS_FREQUENT = """
    (SELECT count(sample.id) >= {frequent} * count(DISTINCT days.day) FROM {days}
    LEFT JOIN LATERAL ({sample}) AS sample ON TRUE)
"""


class PaidDays(NamedTuple):
    """The paid days of filters in SQL, and the payments that the bounds and all filters select, without terms."""

    days: str
    bounded: PaymentQuerySet
    selected: PaymentQuerySet
    has_words: bool

    def from_first(self, order: Order) -> Lookup:
        """Return the condition that a payment is created at or after the first payment of the days."""
        lookup, extreme = (LessThanOrEqual, "max") if order == NEWEST_FIRST else (GreaterThanOrEqual, "min")
        first = positions(of_day(self.bounded), order[:1], 1)
        created_at = f"SELECT {extreme}(created_at) FROM {self.days} CROSS JOIN LATERAL ({first}) AS paid"
        return lookup(F("created_at"), RawSQL(created_at, (), DateTimeField()))  # noqa: S611

    def find(self, page: PaymentQuerySet, *, listed: PaymentQuerySet, order: Order, rows: int) -> PaymentQuerySet:
        """Return the first payments of `page`, which filters with terms have selected of `listed`."""
        parts = {
            "near": self.among(listed.order_by(*order)[: rows * LISTED_PER_ROW], order, rows),
            "days": self.days,
            "paid": positions(of_day(listed & self.selected), order, rows),
            "page": positions(page, order, rows),
            "is_frequent": "TRUE",
            "order": sort_sql(order),
            "rows": rows,
        }
        if self.has_words:
            sample = self.among(of_day(visible_payments())[:SAMPLE], order, SAMPLE)
            parts["is_frequent"] = IS_FREQUENT.format(days=self.days, sample=sample, frequent=FREQUENT)
        sources = (SOURCES + OTHERWISE * self.has_words).format(**parts)
        # With an array, PostgreSQL looks up each ID. It may join an IN by reading all IDs.
        any_id = {"template": "%(expressions)s)", "arg_joiner": " = ANY(ARRAY", "output_field": BooleanField()}
        return payments_by_value().filter(Func("id", RawSQL(sources, ()), **any_id))  # noqa: S611

    def among(self, others: PaymentQuerySet, order: Order, rows: int) -> str:
        """Return the SQL for the first selected payments among others, which have a limit."""
        columns, _, table_and_conditions = positions(self.selected, order, rows).partition(" FROM ")
        return f"{columns} FROM ({compile_queryset(others, is_read_by_sql=True)}) AS {table_and_conditions}"


def of_day(payments: PaymentQuerySet) -> PaymentQuerySet:
    """Return the payments that are paid on `days.day` of the surrounding SQL."""
    return payments.filter(Exact(Day("paid_at"), RawSQL("days.day::date", (), DateField())))


def positions(payments: PaymentQuerySet, order: Sequence[str], rows: int) -> str:
    return compile_queryset(payments.order_by(*order).values_list("id", "created_at")[:rows], is_read_by_sql=True)


def paid_days(filters: Sequence[AppliedFilter]) -> PaidDays | None:
    """Return the paid days of filters; None if they are too many, or if another filter has an index of its own."""
    lower, upper = ([bound for bound in filters if bound.name in names] for names in BOUNDS)
    if not (lower and upper and all(map(is_combined, filters))):
        return None
    if upper[0].values[0] - lower[0].values[0] > SPAN_MAX:
        return None
    # Citus does not send these statements to one shard as they are, so they would take a second.
    if connection.vendor != "postgresql" or uses_citus():
        return None
    first, last = (f"%({shape.placeholders[0]})s::timestamp" for shape in shape_of((lower[0], upper[0])))
    before = " - interval '1 ms'" * (upper[0].name == "paidAt[lt]")
    return PaidDays(
        f"generate_series(date_trunc('day', {first}), {last}{before}, '1 day') AS days(day)",
        select_unbound(visible_payments(), shape_of((*lower, *upper)), None),
        select_unbound(visible_payments(), shape_of(filters), None),
        has_words=any(applied.name in WORDS for applied in filters),
    )


def is_combined(applied: AppliedFilter) -> bool:
    """Return whether a page may read the payments of each day and find those that this filter selects among them."""
    if applied.name == "status":
        return Status.SUCCEEDED in applied.values
    return applied.name in WORDS or applied.name.partition("[")[0] in RANGES
