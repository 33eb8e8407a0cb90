"""Figures of the payments of a period: counts, paid amounts and success rates.

The overview formats and draws them. Texts compare a figure with that of the period before.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import NamedTuple

from payments.admin.periods import Period
from payments.models import IN_PROGRESS, Status
from payments.templatetags.numbers import money
from payments.totals.daily import DailyTotals
from payments.totals.figures import Total, add_up, number_of_payments, success_percent

METHODS_MAX = 10

# A share of at least so many percent has a visible bar.
VISIBLE_PERCENT = 0.5
BAR_PERCENT_MIN = 2.0

# The smallest change that is not rounded to zero.
SHOWN_CHANGE_MIN = 0.05


class Amount(NamedTuple):
    """A sum of payments in a currency."""

    currency: str
    hundredths: int


class Group(NamedTuple):
    """The payments with one of the statuses or methods in `values`. `percent` is their share of all payments."""

    values: Sequence[str]
    name: str
    payments: int
    percent: float
    success_percent: float | None

    @property
    def bar_percent(self) -> float:
        """Return the length of the bar, which is visible for a share of at least `VISIBLE_PERCENT`."""
        return self.percent if self.percent < VISIBLE_PERCENT else max(self.percent, BAR_PERCENT_MIN)


class PeriodPart(NamedTuple):
    """The figures of a day or a week. `paid` has the hundredths of each currency, in the order of `currencies`."""

    period: Period
    payments: int
    succeeded: int
    success_percent: float | None
    paid: Sequence[int]


@dataclass(frozen=True)
class Statistics:
    """Figures of a period. A day without totals counts like a day without payments."""

    period: Period
    daily_totals: DailyTotals

    @property
    def missing_days(self) -> Sequence[date]:
        return self.daily_totals.missing

    @cached_property
    def totals(self) -> list[Total]:
        return self.totals_of(self.period)

    def totals_of(self, part: Period) -> list[Total]:
        return add_up(total for day in part.days for total in self.daily_totals.by_day.get(day, ()))

    @property
    def payments(self) -> int:
        return number_of_payments(self.totals)

    @property
    def in_progress(self) -> int:
        return number_of_payments(total for total in self.totals if total.status in IN_PROGRESS)

    @property
    def success_percent(self) -> float | None:
        return success_percent(self.totals)

    @cached_property
    def currencies(self) -> list[str]:
        return by_frequency(self.totals, "currency")

    @cached_property
    def paid(self) -> list[Amount]:
        return [Amount(currency, self.paid_in[currency]) for currency in self.currencies]

    @cached_property
    def paid_in(self) -> Counter[str]:
        return sum_by_currency(succeeded(self.totals))

    @property
    def groups_by_status(self) -> list[Group]:
        return [group(self.totals, "status", [status.value], name=status.label) for status in Status]

    @property
    def groups_by_method(self) -> list[Group]:
        """Return the groups of the most frequent methods and of the others. An unknown method has an empty value."""
        methods = by_frequency(self.totals, "method")
        frequent, others = methods[:METHODS_MAX], methods[METHODS_MAX:]
        groups = [group(self.totals, "method", [method], name=method or "unknown") for method in frequent]
        return [*groups, group(self.totals, "method", others, name="others")] if others else groups

    @cached_property
    def by_part(self) -> list[PeriodPart]:
        """Return the figures of each day or week, the oldest first."""
        return list(map(self.part, self.period.parts))

    def part(self, period: Period) -> PeriodPart:
        totals = self.totals_of(period)
        paid = sum_by_currency(succeeded(totals))
        return PeriodPart(
            period=period,
            payments=number_of_payments(totals),
            succeeded=number_of_payments(succeeded(totals)),
            success_percent=success_percent(totals),
            paid=[paid[currency] for currency in self.currencies],
        )


def sum_by_currency(totals: Iterable[Total]) -> Counter[str]:
    """Return the hundredths of each currency."""
    sums: Counter[str] = Counter()
    for total in totals:
        sums[total.currency] += total.amount
    return sums


def succeeded(totals: Iterable[Total]) -> Iterable[Total]:
    return (total for total in totals if total.status == Status.SUCCEEDED)


def by_frequency(totals: Iterable[Total], field: str) -> list[str]:
    """Return the values of a field, in the order of their number of payments, largest first."""
    counts: Counter[str] = Counter()
    for total in totals:
        counts[getattr(total, field)] += total.payments
    return sorted(counts, key=lambda value: (-counts[value], value))


def group(totals: Sequence[Total], field: str, values: Sequence[str], *, name: str) -> Group:
    members = [total for total in totals if getattr(total, field) in values]
    percent = 100 * number_of_payments(members) / (number_of_payments(totals) or 1)
    return Group(values, name, number_of_payments(members), percent, success_percent(members))


def compare_numbers(number: int, previous: int) -> str:
    """Return the change of a number of payments: `Up 12.5 %`."""
    return change_in_percent(number, previous) if previous else "No payments before"


def compare_amounts(hundredths: int, previous: int) -> str:
    """Return the change of a paid amount. A percentage needs a positive amount to start from."""
    return change_in_percent(hundredths, previous) if previous > 0 else f"{money(previous)} before"


def compare_rates(percent: float, previous: float | None) -> str:
    """Return the change of a success rate: `Down 1.5 percentage points`."""
    if previous is None:
        return "No completed payments before"
    return describe_change(percent - previous, unit=" percentage points")


def change_in_percent(number: int, previous: int) -> str:
    return describe_change(100 * (number - previous) / previous, unit=" %")


def describe_change(change: float, *, unit: str) -> str:
    if change == 0:
        return "No change"
    size = f"{abs(change):,.1f}" if abs(change) >= SHOWN_CHANGE_MIN else "less than 0.1"
    return f"{'Up' if change > 0 else 'Down'} {size}{unit}"
