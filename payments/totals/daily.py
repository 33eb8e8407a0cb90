"""Totals of the payments of a day. They are computed when they are first needed, and then stored.

A write of payments does not update totals but deletes those of the days that it changes, so that they are computed
again. If it updated them, one bug would leave a wrong total for ever. Triggers would cost time for every row, and Citus
does not support them.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from random import randrange, sample
from typing import NamedTuple
from zoneinfo import ZoneInfo

from django.db import InternalError, OperationalError, transaction
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual
from msgspec.json import decode

from payments.database.limits import statement_limit
from payments.database.statements import Placeholder, Statement
from payments.listing.query import visible_payments
from payments.models import Access, AccessState, DayKind, Organization, Payment, PaymentQuerySet, SummedDay
from payments.models.days import DAY, days_of_utc_day, end_of_day, start_of_day
from payments.models.expressions import Day
from payments.models.ordering import NEWEST_FIRST, OLDEST_FIRST
from payments.runtime import time_limits
from payments.runtime.database_errors import is_locked, is_read_only, is_timeout
from payments.runtime.time_limits import TimeLimit
from payments.totals.figures import Total
from payments.totals.sums import sums_sql, total_of

# A statement reads about so many payments, which takes a fraction of a second.
PAYMENTS_MAX = 50_000


class Calendar(NamedTuple):
    """The days of an organization and mode: their kind, and the name of the time zone."""

    access: Access
    kind: DayKind
    time_zone: str

    @classmethod
    def of(cls, organization: Organization, mode: str, kind: DayKind) -> "Calendar":
        return cls(Access(organization.id, mode), kind, organization.time_zone)

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)


class DailyTotals(NamedTuple):
    """The stored totals by day, in order, and the days without stored totals."""

    by_day: Mapping[date, list[Total]]
    missing: Sequence[date]

    @property
    def totals(self) -> Iterator[Total]:
        return (total for totals in self.by_day.values() for total in totals)


def daily_totals(calendar: Calendar, *, days: Sequence[date]) -> DailyTotals:
    stored = stored_days(calendar, days).filter(time_zone=calendar.time_zone).order_by("day")
    rows = stored.values_list("day", Cast("totals", TextField()))  # years of days are decoded fast
    wanted = set(days)
    by_day = {day: decode(totals, type=list[Total]) for day, totals in rows if day in wanted}
    return DailyTotals(by_day, [day for day in days if day not in by_day])


def stored_days(calendar: Calendar, days: Sequence[date]) -> QuerySet[SummedDay]:
    """Return the stored days, also those of another time zone."""
    stored = SummedDay.objects.filter(**calendar.access._asdict(), kind=calendar.kind)
    # Years of days would be a long list. The first and the last day exclude few others.
    return stored.filter(day__gte=min(days), day__lte=max(days)) if days else stored.none()


def first_and_last_day(calendar: Calendar) -> tuple[date, date] | None:
    """Return days between which all payments of the calendar are, at most a day further; None without payments."""
    column, utc_day = calendar.kind.column, Day(calendar.kind.column)
    payments = Payment.objects.visible_to(calendar.access).filter(**{f"{column}__isnull": False})
    # The orders of the indexes.
    ends = (OLDEST_FIRST, NEWEST_FIRST) if calendar.kind == DayKind.CREATED else ([utc_day.asc()], [utc_day.desc()])
    first, last = (payments.order_by(*end).values_list(utc_day, flat=True).first() for end in ends)
    if first is None or last is None:
        return None
    return min(days_of_utc_day(first, calendar.zone)), max(days_of_utc_day(last, calendar.zone))


def sum_in_time(*calendars: Calendar, days: Sequence[date]) -> bool:
    """Compute and store the missing totals of `days` until the time of a request for this is up.

    Return whether another request can go on: False if not even the first days could be summed. A request begins
    at a random day: a day that takes too long ends the request, and would otherwise block the same days in each.
    """
    stop_at, steps = time.monotonic() + time_limits.SUMMING_DAYS.seconds, 0

    def has_time() -> bool:
        nonlocal steps
        steps += 1
        return time.monotonic() < stop_at

    start = randrange(len(days) + 1)  # noqa: S311  no secret
    try:
        for calendar in sample(calendars, len(calendars)):
            sum_missing_days(calendar, days=[*days[start:], *days[:start]], has_time=has_time)
    except (OperationalError, InternalError) as error:
        if not (is_timeout(error) or is_locked(error) or is_read_only(error)):
            raise
        return steps > 1 or is_locked(error)
    return True


def sum_missing_days(
    calendar: Calendar,
    *,
    days: Sequence[date],
    has_time: Callable[[], bool] = lambda: True,
    payments_max: int = PAYMENTS_MAX,
    limit: TimeLimit | None = time_limits.SUMMING_A_DAY,
) -> None:
    """Compute and store the missing totals of `days`, in their order, as long as `has_time()` is true.

    Consecutive days are summed together, as many as have about `payments_max` payments if they are like the days before
    them. Cost: one query, and six for the days that are summed together. One of the six reads all their payments by
    an index, within `limit`; None: no limit.

    :raises OperationalError: if an import holds the lock for too long, or if reading the payments takes too long; the
        totals of earlier days remain stored
    """
    missing = daily_totals(calendar, days=days).missing
    count = 1
    while missing and has_time():
        together, missing = split_consecutive(missing, count)
        payments = sum_days(calendar, together, limit=limit)
        count = max(1, min(2 * len(together), payments_max * len(together) // max(1, payments)))


def split_consecutive(days: Sequence[date], count: int) -> tuple[Sequence[date], Sequence[date]]:
    """Return the first days, at most `count` and consecutive, and the other days."""
    end = 1
    while end < min(count, len(days)) and days[end] - days[end - 1] == DAY:
        end += 1
    return days[:end], days[end:]


@transaction.atomic
def sum_days(calendar: Calendar, days: Sequence[date], *, limit: TimeLimit | None = time_limits.SUMMING_A_DAY) -> int:
    """Compute and store the totals of consecutive days, except those that another process has stored meanwhile.

    Return the number of payments. An import of these payments cannot commit during the transaction, so the totals
    include all of its payments.

    :raises OperationalError: reading the payments takes too long
    """
    AccessState.objects.lock(calendar.access)
    stored = daily_totals(calendar, days=days)
    totals = stored.by_day
    if stored.missing:
        with statement_limit(limit) if limit else nullcontext():
            totals = compute_totals(calendar, days)
    values = {**calendar.access._asdict(), "kind": calendar.kind, "time_zone": calendar.time_zone}
    stored_days(calendar, days).filter(day__in=stored.missing).delete()  # those of another time zone
    SummedDay.objects.bulk_create(SummedDay(**values, day=day, totals=totals.get(day, [])) for day in stored.missing)
    return sum(total.payments for day in totals.values() for total in day)


def compute_totals(calendar: Calendar, days: Sequence[date]) -> dict[date, list[Total]]:
    """Return the totals of consecutive days. Days without payments are left out."""
    totals: dict[date, list[Total]] = defaultdict(list)
    for part, offset in parts_with_offset(days, calendar.zone):
        # The day of a part of one day is known, even if clocks are changed during it.
        columns = {"day": Day(calendar.kind.column, offset=offset)} if len(part) > 1 else {}
        statement = Statement(sums_sql(paid_or_created(calendar.kind), **columns), is_planned_each_time=True)
        for row in statement.rows(calendar.access._asdict() | bounds(part, calendar.zone)):
            day, *sums = row if columns else (part[0], *row)
            totals[date.fromisoformat(str(day))].append(total_of(sums))
    return totals


def bounds(days: Sequence[date], zone: ZoneInfo) -> dict[str, str]:
    """Return the values of the placeholders of `paid_or_created` for consecutive days."""
    begin, end = (moment.replace(tzinfo=None) for moment in (start_of_day(days[0], zone), end_of_day(days[-1], zone)))
    last = end - timedelta(milliseconds=1)
    values = {"begin": begin, "end": end, "first_day": begin.date(), "last_day": last.date()}
    return {name: str(value) for name, value in values.items()}


def parts_with_offset(days: Sequence[date], zone: ZoneInfo) -> Iterator[tuple[list[date], timedelta]]:
    """Yield parts of consecutive days and their offset from UTC. A day with a change of clocks is a part of its own.

    The databases need no time zones: they add the offset to a time. Their rules might differ from those of Python.
    """

    def offset_and_change(day: date) -> tuple[timedelta, date | None]:
        start = start_of_day(day, zone)
        offset = datetime.combine(day, datetime.min.time(), UTC) - start
        return offset, None if end_of_day(day, zone) - start == DAY else day

    for (offset, _), part in groupby(days, offset_and_change):
        yield list(part), offset


def paid_or_created(kind: DayKind) -> PaymentQuerySet:
    """Return the unbound payments that were paid or created from `begin` to before `end`, on some UTC days."""
    period = {f"{kind.column}__gte": Placeholder("begin"), f"{kind.column}__lt": Placeholder("end")}
    payments = visible_payments().filter(**period)
    if kind == DayKind.PAID:  # the index `payment_paid` has UTC days
        utc_day = Day("paid_at")
        payments = payments.filter(
            GreaterThanOrEqual(utc_day, Placeholder("first_day")), LessThanOrEqual(utc_day, Placeholder("last_day"))
        )
    return payments
