"""The totals of a period, and the lists of their payments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from urllib.parse import urlencode

from django.urls import reverse

from payments.admin.forms import access_query
from payments.admin.payments.form import EXACT
from payments.admin.payments.totals import SUMMED_DAYS_MAX
from payments.admin.periods import Period
from payments.models import IN_PROGRESS, Access, DayKind, Status
from payments.totals.daily import DailyTotals
from payments.totals.figures import Figures, Total, add_up, figures_by_currency, number_of_payments, selected
from payments.totals.figures import success_percent as success_percent_of

FINAL = [status.value for status in Status if status not in IN_PROGRESS]
UNSUCCESSFUL = [status for status in FINAL if status != Status.SUCCEEDED]


@dataclass(frozen=True)
class PeriodTotals:
    """The totals of a period: money by the chosen kind of day, counts by created day. Missing days count as empty."""

    period: Period
    daily_money: DailyTotals
    daily_counts: DailyTotals

    @cached_property
    def missing(self) -> set[date]:
        return {*self.daily_money.missing, *self.daily_counts.missing}

    @cached_property
    def money(self) -> list[Total]:
        return add_up(self.daily_money.totals)

    @cached_property
    def counts(self) -> list[Total]:
        return add_up(self.daily_counts.totals)

    @property
    def is_empty(self) -> bool:
        return not (self.counts or self.money or self.missing)

    @property
    def payments(self) -> int:
        return number_of_payments(self.counts)

    @property
    def final_payments(self) -> int:
        return number_of_payments(selected(self.counts, status=FINAL))

    @property
    def success_percent(self) -> float | None:
        return success_percent_of(self.counts)

    @cached_property
    def currencies(self) -> list[Figures]:
        """Return the money of each currency with succeeded payments, the most frequent currency first."""
        return [figures for figures in figures_by_currency(self.money) if figures.succeeded]

    def paid(self, currency: str) -> int:
        return paid_in(self.money, currency)

    def paid_in_parts(self, currency: str, unit: str) -> list[tuple[Period, int]]:
        """Return what was paid in each day, week or month."""
        paid = {day: paid_in(totals, currency) for day, totals in self.daily_money.by_day.items()}
        return [(part, sum(paid.get(day, 0) for day in part.days)) for part in self.period.divided_by(unit)]


def paid_in(totals: Sequence[Total], currency: str) -> int:
    succeeded = Status.SUCCEEDED.value
    return sum(total.amount for total in totals if total.currency == currency and total.status == succeeded)


@dataclass(frozen=True)
class Lists:
    """The lists of the payments of a period, which may be a preset."""

    access: Access
    kind: DayKind
    period: Period
    preset: str = ""

    def paid(self, currency: str, *, part: Period | None = None, method: Sequence[str] = ()) -> str:
        """Return the list of the succeeded payments in a currency, also those of a part of the period."""
        status = Status.SUCCEEDED.value
        return self.href(part, by=self.kind.value, status=status, currency=currency, method=method)

    def counted(self, **filters: str | Sequence[str]) -> str:
        """Return the list of the payments that were created in the period. `filters` are fields of its form."""
        return self.href(None, by=DayKind.CREATED.value, **filters)

    def href(self, part: Period | None, **filters: str | Sequence[str]) -> str:
        period = part or self.period
        dates = {"since": period.first, "until": period.last}
        days = {"period": self.preset} if self.preset and not part else dates
        count = {"count": EXACT} if period.length > SUMMED_DAYS_MAX else {}
        query = f"{access_query(self.access)}&{urlencode({**days, **filters, **count}, doseq=True)}"
        return f"{reverse('admin:payments_payment_changelist')}?{query}"
