"""The last thirty days of payments, as staff see them first: how many, how much, and how many of them succeeded."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.db import OperationalError
from django.http import HttpRequest
from django.utils import timezone

from payments.admin.charts import Columns, Line, columns, line
from payments.admin.scope import ScopeForm
from payments.models import IN_FLIGHT, Status
from payments.runtime.database_errors import is_locked, is_timeout
from payments.totals import DailyTotals, Total, daily_totals, sum_missing

DAYS = 30

# For how long days are summed that are not known, so that one that takes long, too, ends before the request has to.
# What is left over is summed when the page is asked for again.
SUMMING_SECONDS_MAX = 1.0

CURRENCIES_DRAWN_MAX = 4
METHODS_SHOWN_MAX = 10


class Share(NamedTuple):
    """A kind of payments: how many, which part of all that is, and how many of them succeeded."""

    name: str
    payments: int
    percent: float
    succeeded: int
    success_percent: float | None


class Volume(NamedTuple):
    """What was paid in a currency, in all and by day."""

    currency: str
    amount: str
    chart: Columns
    top: str  # what the chart's full height stands for


class Day(NamedTuple):
    """A day's numbers, for whoever would rather read them."""

    date: date
    payments: int
    succeeded: int
    success_percent: float | None
    amounts: Sequence[str]


@dataclass(frozen=True)
class Overview:
    """What a page shows of thirty days; of a day that is not summed yet, nothing."""

    days: Sequence[date]
    totals: DailyTotals

    @property
    def missing(self) -> Sequence[date]:
        return self.totals.missing

    @cached_property
    def all(self) -> list[Total]:
        return [total for day in self.days for total in self.of(day)]

    def of(self, day: date) -> Sequence[Total]:
        return self.totals.of_day.get(day, ())

    @property
    def payments(self) -> int:
        return count(self.all)

    @property
    def in_flight(self) -> int:
        return count(total for total in self.all if total.status in IN_FLIGHT)

    @property
    def success_percent(self) -> float | None:
        return success_percent(self.all)

    @cached_property
    def currencies(self) -> list[str]:
        """Return the currencies, those of most payments first."""
        return most({total.currency for total in self.all}, self.all, "currency")

    @cached_property
    def payments_chart(self) -> Columns:
        succeeded = [count(paid(self.of(day))) for day in self.days]
        payments = [count(self.of(day)) for day in self.days]
        titles = [
            f"{day}: {whole:,} payments, {part:,} succeeded"
            for day, whole, part in zip(self.days, payments, succeeded, strict=True)
        ]
        return columns(succeeded, payments, titles)

    @cached_property
    def success_chart(self) -> Line:
        shares = (success_percent(self.of(day)) for day in self.days)
        return line([None if share is None else share / 100 for share in shares])

    @cached_property
    def volumes(self) -> list[Volume]:
        return [self.volume(currency) for currency in self.currencies[:CURRENCIES_DRAWN_MAX]]

    def volume(self, currency: str) -> Volume:
        daily = [hundredths(self.of(day), currency) for day in self.days]
        titles = [f"{day}: {money(amount)} {currency}" for day, amount in zip(self.days, daily, strict=True)]
        chart = columns(daily, daily, titles)
        return Volume(currency, money(sum(daily)), chart, money(chart.top))

    @property
    def other_volumes(self) -> list[str]:
        rest = self.currencies[CURRENCIES_DRAWN_MAX:]
        return [f"{money(hundredths(self.all, currency))} {currency}" for currency in rest]

    @property
    def statuses(self) -> list[Share]:
        return [share(Status(name).label, self.all, "status", name) for name in Status.values]

    @property
    def methods(self) -> list[Share]:
        names = most({total.method for total in self.all}, self.all, "method")[:METHODS_SHOWN_MAX]
        return [share(name or "not known", self.all, "method", name) for name in names]

    @cached_property
    def table(self) -> list[Day]:
        return [
            Day(
                day,
                count(self.of(day)),
                count(paid(self.of(day))),
                success_percent(self.of(day)),
                [money(hundredths(self.of(day), currency)) for currency in self.currencies],
            )
            for day in reversed(self.days)
        ]


def overview(request: HttpRequest) -> dict[str, Any]:
    """Return what the start page shows: the form that chooses whose payments, and their last thirty days."""
    form = ScopeForm.of(request.GET)
    if not form.is_valid():
        return {"form": form}
    today = timezone.now().date()
    days = [today - timedelta(days=number) for number in reversed(range(DAYS))]
    ends_at = time.monotonic() + SUMMING_SECONDS_MAX
    try:
        sum_missing(form.access, days=days, has_time=lambda: time.monotonic() < ends_at)
    except OperationalError as error:
        if not (is_timeout(error) or is_locked(error)):
            raise
    return {"form": form, "overview": Overview(days, daily_totals(form.access, days=days))}


def count(totals: Iterable[Total]) -> int:
    return sum(total.number for total in totals)


def paid(totals: Iterable[Total]) -> Iterable[Total]:
    return (total for total in totals if total.status == Status.SUCCEEDED)


def success_percent(totals: Sequence[Total]) -> float | None:
    """Return how many of a hundred payments succeeded, of those that are decided; None where none is."""
    decided = count(total for total in totals if total.status not in IN_FLIGHT)
    return 100 * count(paid(totals)) / decided if decided else None


def hundredths(totals: Iterable[Total], currency: str) -> int:
    """Return what was paid in a currency."""
    return sum(total.hundredths for total in paid(totals) if total.currency == currency)


def money(hundredths: int) -> str:
    sign = "-" if hundredths < 0 else ""
    return f"{sign}{abs(hundredths) // 100:,}.{abs(hundredths) % 100:02}"


def most(names: Iterable[str], totals: Iterable[Total], kind: str) -> list[str]:
    """Return names in the order of how many payments there are of each, the most first."""
    numbers: Counter[str] = Counter()
    for total in totals:
        numbers[getattr(total, kind)] += total.number
    return sorted(names, key=lambda name: (-numbers[name], name))


def share(label: str, totals: Sequence[Total], kind: str, name: str) -> Share:
    of_kind = [total for total in totals if getattr(total, kind) == name]
    percent = 100 * count(of_kind) / (count(totals) or 1)
    return Share(label, count(of_kind), percent, count(paid(of_kind)), success_percent(of_kind))
