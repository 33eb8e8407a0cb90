"""The totals above the payment list: the number of payments, the sum per currency, and the success rate.

They are exact if the totals of the list's days are stored, or if the list has at most 10,000 payments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache

from payments.admin.overview.statistics import (
    Amount,
    by_frequency,
    sum_by_currency,
)
from payments.admin.payments.search import SearchedPage
from payments.admin.periods import DateRange, Period
from payments.conf import conf
from payments.database.limits import optional_statements
from payments.database.statements import Statement, compile_queryset
from payments.listing.content import access_values
from payments.listing.query import Listing, filter_values, payments_of_list, select
from payments.models import Payment, PaymentQuerySet
from payments.models.days import day_of
from payments.models.ordering import NEWEST_FIRST, OLDEST_FIRST, Order
from payments.totals.daily import GROUP_COLUMNS, Calendar, compute_totals, daily_totals, hundredths
from payments.totals.figures import Total, add_up, number_of_payments, success_percent

SUMMED_DAYS_MAX = 366  # of a list that is summed day by day
DAYS_COMPUTED_MAX = 3  # as long as their totals are not stored

# The filters by which the totals of days are grouped.
GROUPS = frozenset({"currency", "status", "method"})
DAY_FILTERS = frozenset({*GROUPS, "createdAt[gte]", "createdAt[lte]"})

STATEMENTS_MAX = 250

GROUPED = """
    SELECT amount_currency, status, method, COUNT(*), SUM(hundredths)
    FROM ({rows}) AS payments GROUP BY amount_currency, status, method
"""


class TooManyPayments(Exception):
    """The list has more payments than can be summed for a page."""


@dataclass(frozen=True)
class ListTotals:
    """The totals of a list, or the reason why they are unknown."""

    totals: Sequence[Total] = ()
    problem: str = ""  # an empty text if the totals are known

    @property
    def payments(self) -> int:
        return number_of_payments(self.totals)

    @property
    def success_percent(self) -> float | None:
        return success_percent(self.totals)

    @cached_property
    def amounts(self) -> list[Amount]:
        """Return the sum in each currency, the most frequent currency first."""
        sums = sum_by_currency(self.totals)
        return [Amount(currency, sums[currency]) for currency in by_frequency(self.totals, "currency")]


def fetch_list_totals(searched: SearchedPage, *, calendar: Calendar, created: DateRange) -> ListTotals:
    """Return the totals of the listing of a page; `created` are the days of the calendar to which it is restricted.

    Cost: at most seven optional statements.
    """
    if searched.has_many_results:
        return ListTotals(problem="Not counted: the search has many results.")
    totals = ListTotals(problem="The payments could not be counted in time.")
    try:
        with optional_statements():
            totals = ListTotals(exact_totals(searched.listing, calendar=calendar, created=created))
    except TooManyPayments:
        totals = ListTotals(problem=f"More than {conf.SUMMED_PAYMENTS_MAX:,}.")
    return totals


def exact_totals(listing: Listing, *, calendar: Calendar, created: DateRange) -> list[Total]:
    """Return the totals of the listing: the stored totals of its days or, for few payments, the sums of its payments.

    :raises TooManyPayments: that would take too long
    """
    days = days_to_sum(listing, calendar=calendar, created=created)
    stored = None if days is None else daily_totals(calendar, days=days)
    if stored and not stored.missing:
        return selected_totals(listing, stored.by_day)
    try:
        return listed_totals(listing)
    except TooManyPayments:
        if stored is None or len(stored.missing) > DAYS_COMPUTED_MAX:
            raise
        computed = [compute_totals(calendar, [day]) for day in stored.missing]
        return selected_totals(listing, stored.by_day, *computed)


def listed_totals(listing: Listing) -> list[Total]:
    """Return the totals of the payments in the list; raise `TooManyPayments` for more than `SUMMED_PAYMENTS_MAX`."""
    filters, order, _ = listing.selection
    has_own_index = any(applied.filter.has_own_index for applied in filters)
    statement = totals_statement(
        select(payments_of_list(filters), filters),
        # In the order of the list, PostgreSQL reads it along its index, and not the payments of all organizations.
        order=None if has_own_index else order,
        has_filters=bool(filters),
        payments_max=conf.SUMMED_PAYMENTS_MAX,
    )
    rows = statement.rows(access_values(listing.access) | filter_values(filters))
    totals = [Total._make([*row[:3], *map(int, row[3:]), 0, 0, 0, 0, 0]) for row in rows]
    if number_of_payments(totals) > conf.SUMMED_PAYMENTS_MAX:
        raise TooManyPayments
    return totals


@lru_cache(STATEMENTS_MAX)
def totals_statement(
    payments: PaymentQuerySet, *, order: Order | None, has_filters: bool, payments_max: int
) -> Statement:
    """Return the statement for the totals of the first of these unbound payments, one more than `payments_max`."""
    ordered = payments.order_by(*order) if order else payments
    rows = ordered.annotate(hundredths=hundredths("amount")).values_list(*GROUP_COLUMNS, "hundredths")
    sql = GROUPED.format(rows=compile_queryset(rows[: payments_max + 1], is_read_by_sql=True))
    return Statement(sql, is_planned_each_time=has_filters)


def selected_totals(listing: Listing, *days: Mapping[date, Sequence[Total]]) -> list[Total]:
    """Return the totals of days together, without those that the listing's filters exclude."""
    filters = [applied for applied in listing.selection.filters if applied.name in GROUPS]
    totals = (total for by_day in days for of_day in by_day.values() for total in of_day)
    return add_up(
        total for total in totals if all(getattr(total, applied.name) in applied.values for applied in filters)
    )


def days_to_sum(listing: Listing, *, calendar: Calendar, created: DateRange) -> list[date] | None:
    """Return the days of the list's payments; None if the totals of days do not suffice, or for too many days."""
    if not DAY_FILTERS.issuperset(applied.name for applied in listing.selection.filters):
        return None
    payments = Payment.objects.visible_to(listing.access).values_list("created_at", flat=True)
    oldest, newest = payments.order_by(*OLDEST_FIRST).first(), payments.order_by(*NEWEST_FIRST).first()
    if oldest is None or newest is None:
        return []
    first = max(created.first or date.min, day_of(oldest, calendar.zone))
    period = Period(first, min(created.last or date.max, day_of(newest, calendar.zone)))
    return period.days if period.length <= SUMMED_DAYS_MAX else None
