"""Reports of a range of days: figures by period and by method, and the payments that are still open."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

from django.db.models import TextChoices

from payments.conf import conf
from payments.models import IN_PROGRESS, Organization, Payment
from payments.models.days import days_between, end_of_day, last_of_month
from payments.models.ordering import NEWEST_FIRST
from payments.totals.daily import Calendar, daily_totals, first_and_last_day, sum_in_time
from payments.totals.figures import KNOWN, Figures, Total, figures_by_currency

MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


class TotalsNotReady(Exception):
    """The totals of so many days could not be computed in time. If it `goes_on`, another request computes more."""

    def __init__(self, days: int, *, goes_on: bool) -> None:
        super().__init__(f"The totals of {days} days are missing.")
        self.days, self.goes_on = days, goes_on


class Unit(TextChoices):
    """The length of the periods of a report."""

    DAY = "day"
    MONTH = "month"
    TOTAL = "total"

    def period_of(self, day: date) -> str:
        """Return the name of the period with a day: `2026-10-31`, `2026-10` or `total`."""
        return {Unit.DAY: f"{day}", Unit.MONTH: month_of(day)}.get(self, self.value)


class Row(NamedTuple):
    """The figures of the payments of a period or a method in one currency."""

    name: str
    figures: Figures

    @property
    def amounts(self) -> dict[str, int]:
        return {name: getattr(self.figures, name) for name in ("paid", *KNOWN)}

    @property
    def members(self) -> dict[str, Any]:
        """Return the figures as members of a JSON object. Amounts are decimal strings."""
        figures = self.figures
        return {
            "currency": figures.currency,
            **{name: decimal_text(amount) for name, amount in self.amounts.items()},
            "payments": figures.payments,
            "succeeded": figures.succeeded,
            "netKnown": figures.net_known,
            "remainingKnown": figures.remaining_known,
        }


class OpenPayments(NamedTuple):
    """The payments in one currency that are still in progress."""

    currency: str
    payments: int
    amount: int

    @property
    def members(self) -> dict[str, Any]:
        currency, payments, amount = self
        return {"currency": currency, "payments": payments, "openAmount": decimal_text(amount)}


@dataclass(frozen=True)
class Report:
    """The report of a month. `last_day` is its last day or, if the month is not over, today."""

    organization: Organization
    calendar: Calendar
    month: date
    last_day: date
    by_currency: Sequence[Row]  # the currency with the most payments comes first
    by_method: Sequence[Row]
    daily: Sequence[Row]
    open_payments: Sequence[OpenPayments] | None  # None: too many to be added up

    @property
    def note(self) -> str:
        """Return a sentence if the month is not over."""
        if self.last_day == last_of_month(self.month):
            return ""
        return f"This month is not over: figures up to {self.last_day.day} {self.last_day:%B}."


def read_report(organization: Organization, calendar: Calendar, *, days: Sequence[date]) -> Report:
    """Return the report of the days of a month, up to today.

    :raises TotalsNotReady: some days could not be summed in time
    """
    by_day = complete_totals(calendar, days=days)
    month = figures_by_currency(chain.from_iterable(by_day.values()))
    return Report(
        organization,
        calendar,
        month=days[0],
        last_day=days[-1],
        by_currency=[Row(Unit.TOTAL, figures) for figures in month],
        by_method=rows((total.method, total) for totals in by_day.values() for total in totals),
        daily=period_rows(by_day, Unit.DAY),
        open_payments=read_open_payments(calendar, last_day=days[-1]),
    )


def complete_totals(
    calendar: Calendar, *, days: Sequence[date], share: AbstractContextManager[None] | None = None
) -> Mapping[date, list[Total]]:
    """Return the totals of `days`, and compute those that are missing. Days without payments can be left out.

    `share` is open while totals are computed, which can take long.

    :raises TotalsNotReady: some days could not be summed in time
    """
    stored, missing = read_days(calendar, days)
    if missing:
        with share or nullcontext():
            goes_on = sum_in_time(calendar, days=missing)
        stored, missing = read_days(calendar, days)
        if missing:
            raise TotalsNotReady(len(missing), goes_on=goes_on)
    return stored


def read_days(calendar: Calendar, days: Sequence[date]) -> tuple[Mapping[date, list[Total]], list[date]]:
    """Return the stored totals, and the days with payments that have none."""
    stored = daily_totals(calendar, days=days)
    # Read later than the totals, so all other days had no payments when the totals were read.
    return stored.by_day, days_with_payments(calendar, stored.missing)


def days_with_payments(calendar: Calendar, days: Sequence[date]) -> list[date]:
    """Return the days between the first and the last payment. The others need no stored totals: there can be many."""
    if not days or (ends := first_and_last_day(calendar)) is None:
        return []
    return [day for day in days if ends[0] <= day <= ends[1]]


def rows(totals: Iterable[tuple[str, Total]]) -> list[Row]:
    """Return the figures of each name and currency, sorted."""
    groups: dict[str, list[Total]] = defaultdict(list)
    for name, total in totals:
        groups[name].append(total)
    return [Row(name, figures) for name in sorted(groups) for figures in sorted(figures_by_currency(groups[name]))]


def period_rows(by_day: Mapping[date, Sequence[Total]], unit: Unit) -> list[Row]:
    return rows((unit.period_of(day), total) for day, totals in by_day.items() for total in totals)


def read_open_payments(calendar: Calendar, *, last_day: date) -> list[OpenPayments] | None:
    """Return the payments in progress now that were created up to a day; None if there are too many."""
    payments = Payment.objects.visible_to(calendar.access).with_status(IN_PROGRESS)
    created = payments.created(end_of_day(last_day, calendar.zone), lookup="lt").order_by(*NEWEST_FIRST)
    amounts: dict[str, list[Decimal]] = defaultdict(list)
    for currency, amount in created.values_list("amount_currency", "amount")[: conf.SUMMED_PAYMENTS_MAX + 1]:
        amounts[currency].append(amount)
    if sum(map(len, amounts.values())) > conf.SUMMED_PAYMENTS_MAX:
        return None
    return [
        OpenPayments(currency, len(amounts[currency]), int(sum(amounts[currency]) * 100))
        for currency in sorted(amounts)
    ]


def decimal_text(hundredths: int) -> str:
    return f"{Decimal(hundredths).scaleb(-2):.2f}"


def parse_month(text: str) -> date | None:
    """Return the first day of a month such as `2026-10`; None for another text."""
    return date.fromisoformat(f"{text}-01") if MONTH.fullmatch(text) and not text.startswith("0000") else None


def month_of(day: date) -> str:
    return f"{day}"[:7]


def days_of_month(month: date, *, today: date) -> list[date]:
    """Return the days of a month up to today; none of a month that has not begun."""
    return days_between(month, min(last_of_month(month), today))
