"""Totals of the payments that were created on a day. They are computed when they are first needed, and then stored.

An import does not update totals but deletes those of the days that it changes, so that they are computed again. If it
updated them, one bug would leave a wrong total for ever. Triggers would cost time for every row, and Citus does not
support them.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from django.db import transaction
from django.db.models import BigIntegerField, Count, Expression, F, Func, Sum
from django.db.models.functions import Cast

from payments.database.limits import statement_limit
from payments.models import Access, AccessState, Payment, SummedDay
from payments.models.expressions import Day
from payments.runtime import time_limits

GROUP_COLUMNS = ("amount_currency", "status", "method")

DAY = timedelta(days=1)

# A statement reads about so many payments, which takes a fraction of a second.
PAYMENTS_MAX = 50_000


class OrganizationDay(NamedTuple):
    """A day of an organization and mode. The day is text such as 2026-01-31."""

    organization_id: int
    mode: str
    day: str

    @property
    def access(self) -> Access:
        return Access(self.organization_id, self.mode)


class Total(NamedTuple):
    """The number of payments with the same currency, status and method, and the sum of their amounts in hundredths."""

    currency: str
    status: str
    method: str
    number: int
    hundredths: int


class DailyTotals(NamedTuple):
    """The stored totals by day, in order, and the days without stored totals."""

    by_day: Mapping[date, list[Total]]
    missing: Sequence[date]


def daily_totals(access: Access, *, days: Sequence[date]) -> DailyTotals:
    """Return the stored totals of `days`, with one query."""
    stored = SummedDay.objects.filter(organization_id=access.organization_id, mode=access.mode, day__in=days)
    by_day = {summed_day.day: list(map(Total._make, summed_day.totals)) for summed_day in stored.order_by("day")}
    return DailyTotals(by_day, [day for day in days if day not in by_day])


def sum_missing_days(
    access: Access, *, days: Sequence[date], has_time: Callable[[], bool], payments_max: int = PAYMENTS_MAX
) -> None:
    """Compute and store the missing totals of `days`, in their order, as long as `has_time()` is true.

    Consecutive days are summed together, as many as have about `payments_max` payments if they are like the days before
    them. Cost: one query, and five for the days that are summed together. One of the five reads all their payments by
    the list's index.

    :raises OperationalError: if an import holds the lock for too long, or if reading the payments takes too long; the
        totals of earlier days remain stored
    """
    missing = daily_totals(access, days=days).missing
    count = 1
    while missing and has_time():
        together, missing = split_consecutive(missing, count)
        payments = sum_days(access, together)
        count = max(1, min(2 * len(together), payments_max * len(together) // max(1, payments)))


def split_consecutive(days: Sequence[date], count: int) -> tuple[Sequence[date], Sequence[date]]:
    """Return the first days, at most `count` and consecutive, and the other days."""
    end = 1
    while end < min(count, len(days)) and days[end] - days[end - 1] == DAY:
        end += 1
    return days[:end], days[end:]


@transaction.atomic
def sum_days(access: Access, days: Sequence[date]) -> int:
    """Compute and store the totals of consecutive days, except those that another process has stored meanwhile.

    Return the number of payments. An import of these payments cannot commit during the transaction, so the totals
    include all of its payments.

    :raises OperationalError: reading the payments takes too long
    """
    AccessState.objects.lock(access)
    stored = daily_totals(access, days=days)
    totals = stored.by_day
    if stored.missing:
        with statement_limit(time_limits.SUMMING_A_DAY):
            totals = compute_totals(access, days)
    values = {"organization_id": access.organization_id, "mode": access.mode}
    SummedDay.objects.bulk_create(SummedDay(**values, day=day, totals=totals.get(day, [])) for day in stored.missing)
    return sum(total.number for day in totals.values() for total in day)


def compute_totals(access: Access, days: Sequence[date]) -> dict[date, list[Total]]:
    """Return the totals of consecutive days. Days without payments are left out."""
    begin, end = datetime.combine(days[0], time.min, UTC), datetime.combine(days[-1], time.max, UTC)
    payments = Payment.objects.visible_to(access).filter(created_at__gte=begin, created_at__lte=end)
    groups = payments.values_list(Day("created_at"), *GROUP_COLUMNS)
    totals: dict[date, list[Total]] = defaultdict(list)
    for day, currency, status, method, number, amount in groups.annotate(
        number=Count("id"), hundredths=Sum(hundredths())
    ).order_by(*GROUP_COLUMNS):
        totals[day].append(Total(currency, status, method, number, int(amount)))
    return totals


def hundredths() -> Expression:
    """Return the amount in hundredths: an integer, because SQLite adds decimals as binary floating-point numbers."""
    return Cast(Func(F("amount"), template="ROUND(%(expressions)s * 100)"), BigIntegerField())


def delete_totals(days: Collection[OrganizationDay]) -> None:
    """Delete the totals of days whose payments this transaction has changed. It must have locked their states."""
    for (organization_id, mode), group in groupby(sorted(days), key=attrgetter("access")):
        dates = [changed.day for changed in group]
        SummedDay.objects.filter(organization_id=organization_id, mode=mode, day__in=dates).delete()
