"""The totals above the payment list: the number of payments, their money per currency, and the other statuses.

They are exact for at most 10,000 payments. If the daily totals suffice for the list's filters, they are also exact for
a year of days. A longer list is counted if its address says so (`count=exact`). What other pages have computed does not
matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

from payments.admin.payments.form import SearchForm
from payments.admin.payments.search import SearchedPage
from payments.conf import conf
from payments.database.limits import optional_statements
from payments.database.statements import Statement
from payments.listing.query import Listing, filter_values, payments_of_list, select
from payments.models import PaymentQuerySet, Status
from payments.models.days import days_between
from payments.models.ordering import Order
from payments.runtime import time_limits
from payments.templatetags.texts import grouped
from payments.totals.daily import daily_totals, first_and_last_day, sum_in_time
from payments.totals.figures import GROUPS, Figures, Total, add_up, figures_by_currency, number_of_payments, selected
from payments.totals.sums import sums_sql, total_of

SUMMED_DAYS_MAX = 366  # of a list that is summed day by day without `count=exact`
EXACT_DAYS_MAX = 3660  # and with it

STATEMENTS_MAX = 250


@dataclass(frozen=True)
class ListTotals:
    """The totals of a list, or why they are unknown."""

    totals: Sequence[Total] | None = None
    more_than: int = 0  # the list has more payments, which were not counted
    timed_out: bool = False
    missing_days: int = 0  # they have no totals yet
    goes_on: bool = False  # another request computes more of them

    @property
    def payments(self) -> int:
        return number_of_payments(self.totals or ())

    @property
    def figures(self) -> list[Figures]:
        """Return the money of each currency with succeeded payments, the most frequent currency first."""
        return [figures for figures in figures_by_currency(self.totals or ()) if figures.succeeded]

    @property
    def other_statuses(self) -> dict[str, int]:
        """Return the number of payments of each other status than succeeded."""
        counts = {status.value: number_of_payments(self.totals or (), status) for status in Status}
        return {status: count for status, count in counts.items() if count and status != Status.SUCCEEDED}


def fetch_list_totals(form: SearchForm, searched: SearchedPage) -> ListTotals:
    """Return the totals of the listing of a page.

    Cost: at most eight optional statements, and the time of `sum_in_time`.
    """
    is_exact = bool(form.cleaned_data["count"])
    if searched.has_many_results and not is_exact:
        return ListTotals()
    days, totals = None, ListTotals(timed_out=True)
    with optional_statements(time_limits.SUMMING_A_DAY if is_exact else time_limits.OPTIONAL_STATEMENT):
        days = days_to_sum(form, searched.listing, days_max=EXACT_DAYS_MAX if is_exact else SUMMED_DAYS_MAX)
        stored = None if days is None else stored_totals(form, days)
        if stored and not stored.missing_days:
            return stored
        payments_max = None if is_exact and days is None else conf.SUMMED_PAYMENTS_MAX
        totals = listed_totals(searched.listing, payments_max=payments_max)
    if days is None or totals.totals is not None:
        return totals
    goes_on = sum_in_time(form.calendar(form.kind), days=days)
    totals = ListTotals(timed_out=True)
    with optional_statements():
        totals = replace(stored_totals(form, days), goes_on=goes_on)
    return totals  # noqa: RET504  the block may end early


def stored_totals(form: SearchForm, days: Sequence[date]) -> ListTotals:
    """Return the stored totals of the days, without those that the list's filters exclude."""
    daily = daily_totals(form.calendar(form.kind), days=days)
    if daily.missing:
        return ListTotals(missing_days=len(daily.missing))
    filters = {applied.name: applied.values for applied in form.selection.filters if applied.name in GROUPS}
    return ListTotals(add_up(selected(daily.totals, **filters)))


def listed_totals(listing: Listing, *, payments_max: int | None) -> ListTotals:
    """Return the totals of the payments in the list, unless it has more than `payments_max`."""
    filters, order, _ = listing.selection
    has_own_index = any(applied.filter.has_own_index for applied in filters)
    statement = totals_statement(
        select(payments_of_list(filters), filters),
        # In the order of the list, PostgreSQL reads it along its index, and not the payments of all organizations.
        order=None if has_own_index else order,
        has_filters=bool(filters),
        payments_max=payments_max,
    )
    totals = [total_of(row) for row in statement.rows(listing.access._asdict() | filter_values(filters))]
    if payments_max is not None and number_of_payments(totals) > payments_max:
        return ListTotals(more_than=payments_max)
    return ListTotals(totals)


@lru_cache(STATEMENTS_MAX)
def totals_statement(
    payments: PaymentQuerySet, *, order: Order | None, has_filters: bool, payments_max: int | None
) -> Statement:
    """Return the statement for the totals of the first of these unbound payments, one more than `payments_max`."""
    ordered = payments.order_by(*order) if order else payments
    part = ordered if payments_max is None else ordered[: payments_max + 1]
    return Statement(sums_sql(part), is_planned_each_time=has_filters)


def days_to_sum(form: SearchForm, listing: Listing, *, days_max: int) -> list[date] | None:
    """Return the days of the list's payments; None if the totals of days do not suffice, or for too many days."""
    bounds = {f"{form.kind.field}[gte]", f"{form.kind.field}[lt]"}
    if not {*GROUPS, *bounds}.issuperset(applied.name for applied in listing.selection.filters):
        return None
    ends = first_and_last_day(form.calendar(form.kind))
    if ends is None:
        return []
    first, last = max(form.days.first or date.min, ends[0]), min(form.days.last or date.max, ends[1])
    return days_between(first, last) if (last - first).days < days_max else None


def count_text(payments: PaymentQuerySet) -> str:
    """Return the number of payments, counted no further than for a list; an empty text without payments."""
    payments_max = conf.SUMMED_PAYMENTS_MAX
    count = payments[: payments_max + 1].count()
    return f"more than {grouped(payments_max)}" if count > payments_max else grouped(count) if count else ""
