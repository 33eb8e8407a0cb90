"""The figures of the start page: those of a period as tiles, charts and tables, compared with the period before."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from payments.admin.access_form import access_query
from payments.admin.overview.charts import BarChart, Label, LineChart, bar_chart, line_chart
from payments.admin.overview.statistics import (
    Amount,
    Group,
    PeriodPart,
    Statistics,
    compare_amounts,
    compare_numbers,
    compare_rates,
)
from payments.admin.periods import Period, current_day, join_days
from payments.listing.filter_types import VALUES_MAX
from payments.models import IN_PROGRESS, Access, Payment, Status
from payments.models.ordering import NEWEST_FIRST
from payments.templatetags.numbers import grouped, money, percent

CURRENCIES_MAX = 4  # with a tile and a chart
MISSING_PERIODS_MAX = 5  # in the text that names the missing days

IN_PROGRESS_STATUSES = [status.value for status in Status if status in IN_PROGRESS]
COMPLETED_STATUSES = [status.value for status in Status if status not in IN_PROGRESS]


class Tile(NamedTuple):
    """A figure, its change since the period before, and the list of its payments."""

    name: str
    value: str
    note: str
    change: str  # empty if the period before is not summed
    href: str


class PaidChart(NamedTuple):
    """The amounts that were paid in a currency, and the list of their payments."""

    paid: Amount
    chart: BarChart
    href: str


@dataclass(frozen=True)
class Overview:
    """The statistics of a period and of the period before, as texts, charts and links."""

    access: Access
    statistics: Statistics
    previous: Statistics

    @property
    def period(self) -> Period:
        return self.statistics.period

    @property
    def unit(self) -> str:
        return self.period.part_unit

    @property
    def compared(self) -> Statistics | None:
        """Return the statistics of the period before; None while some of its days are missing.

        Today alone is not compared: it is not over yet.
        """
        is_today = self.period.first == self.period.last == current_day()
        return None if self.previous.missing_days or is_today else self.previous

    def href(self, period: Period | None = None, **filters: str | Sequence[str]) -> str:
        """Return the list of the payments of the period, or of a part of it. `filters` are fields of its form."""
        period = period or self.period
        fields = urlencode({**filters, "since": period.first, "until": period.last}, doseq=True)
        return f"{reverse('admin:payments_payment_changelist')}?{access_query(self.access)}&{fields}"

    @property
    def completed_href(self) -> str:
        return self.href(status=COMPLETED_STATUSES)

    # Tiles.

    @property
    def tiles(self) -> list[Tile]:
        """Return the figures of the period. A success rate without completed payments has no value, and no tile."""
        now, before = self.statistics, self.compared
        change = compare_numbers(now.payments, before.payments) if before else ""
        tiles = [Tile("Payments", grouped(now.payments), "", change, self.href())]
        if (rate := now.success_percent) is not None:
            change = compare_rates(rate, before.success_percent) if before else ""
            tiles.append(Tile("Success rate", percent(rate), "of completed payments", change, self.completed_href))
        change = compare_numbers(now.in_progress, before.in_progress) if before else ""
        href = self.href(status=IN_PROGRESS_STATUSES)
        tiles.append(Tile("In progress", grouped(now.in_progress), "open, pending or authorized", change, href))
        return [*tiles, *map(self.paid_tile, self.main_paid)]

    def paid_tile(self, paid: Amount) -> Tile:
        change = compare_amounts(paid.hundredths, self.compared.paid_in[paid.currency]) if self.compared else ""
        return Tile(f"Paid in {paid.currency}", money(paid.hundredths), "", change, self.paid_href(paid.currency))

    def paid_href(self, currency: str) -> str:
        return self.href(status=[Status.SUCCEEDED], currency=currency)

    @property
    def main_paid(self) -> Sequence[Amount]:
        """Return what was paid in the most frequent currencies."""
        return self.statistics.paid[:CURRENCIES_MAX]

    @property
    def other_paid(self) -> Sequence[Amount]:
        return self.statistics.paid[CURRENCIES_MAX:]

    # Charts.

    @property
    def has_charts(self) -> bool:
        """Return whether there are several bars: the only bar of a day would repeat the tile."""
        return len(self.parts) > 1

    @cached_property
    def parts(self) -> Sequence[PeriodPart]:
        return self.statistics.by_part

    @property
    def part_rows(self) -> list[tuple[PeriodPart, str]]:
        """Return the figures of each day or week, and the list of its payments."""
        return [(part, self.href(part.period)) for part in reversed(self.parts)]

    @property
    def payments_chart(self) -> BarChart:
        return bar_chart(
            [part.payments for part in self.parts],
            parts=[part.succeeded for part in self.parts],
            labels=[
                Label(
                    f"{part.period}: {grouped(part.payments)} payment{'s' * (part.payments != 1)}, "
                    f"{grouped(part.succeeded)} succeeded",
                    self.href(part.period),
                )
                for part in self.parts
            ],
        )

    @property
    def success_chart(self) -> LineChart:
        rates = [part.success_percent for part in self.parts]
        labels = [
            Label(f"{part.period}: {percent(part.success_percent)}", self.href(part.period, status=COMPLETED_STATUSES))
            for part in self.parts
        ]
        return line_chart([None if rate is None else rate / 100 for rate in rates], labels=labels)

    @property
    def paid_charts(self) -> list[PaidChart]:
        return [
            PaidChart(paid, self.paid_chart(index, paid.currency), self.paid_href(paid.currency))
            for index, paid in enumerate(self.main_paid)
        ]

    def paid_chart(self, currency_index: int, currency: str) -> BarChart:
        amounts = [part.paid[currency_index] for part in self.parts]
        labels = [
            Label(
                f"{part.period}: {money(amount)} {currency}",
                self.href(part.period, status=[Status.SUCCEEDED], currency=currency),
            )
            for part, amount in zip(self.parts, amounts, strict=True)
        ]
        return bar_chart(amounts, parts=amounts, labels=labels)

    # Tables of groups.

    @property
    def status_rows(self) -> list[tuple[Group, str]]:
        """Return the figures of each status, and the list of its payments."""
        return [(group, self.href(status=group.values)) for group in self.statistics.groups_by_status]

    @property
    def method_rows(self) -> list[tuple[Group, str]]:
        """Return the figures of each method, and the list of its payments; empty if no filter selects them."""
        return [
            (group, self.href(method=group.values) if all(group.values) and len(group.values) <= VALUES_MAX else "")
            for group in self.statistics.groups_by_method
        ]

    # Missing figures.

    @property
    def has_missing_days(self) -> bool:
        return bool(self.statistics.missing_days or self.previous.missing_days)

    @property
    def missing_periods(self) -> list[Period]:
        return join_days(self.statistics.missing_days)[:MISSING_PERIODS_MAX]

    @property
    def has_more_missing_periods(self) -> bool:
        return len(join_days(self.statistics.missing_days)) > MISSING_PERIODS_MAX

    @cached_property
    def newest_day(self) -> Period | None:
        """Return the day of the newest payment, even outside of the period; None if there are no payments."""
        payments = Payment.objects.visible_to(self.access).order_by(*NEWEST_FIRST)
        created_at = payments.values_list("created_at", flat=True).first()
        return None if created_at is None else Period(created_at.date(), created_at.date())

    @property
    def is_without_payments(self) -> bool:
        """Return whether the organization has no payments in this mode at all. It can cost one query."""
        return not (self.statistics.payments or self.statistics.missing_days or self.newest_day)

    @property
    def newest_href(self) -> str:
        return self.href(self.newest_day)
