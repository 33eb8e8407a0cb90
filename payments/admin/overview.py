"""The start page: the figures of the last 30 days, as tiles, charts and a table."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.db import OperationalError
from django.http import HttpRequest
from django.utils import timezone

from payments.admin.access_form import AccessForm
from payments.admin.charts import BarChart, LineChart, bar_chart, line_chart
from payments.admin.statistics import Day, Paid, Statistics
from payments.runtime.database_errors import is_locked, is_timeout
from payments.templatetags.numbers import grouped, money
from payments.totals import daily_totals, sum_missing_days

DAYS = 30

# A request stops summing days after this time, well before its deadline. The next request sums the remaining days.
SUMMING_SECONDS_MAX = 1.0

CURRENCY_CHARTS_MAX = 4


class PaidChart(NamedTuple):
    """What was paid in a currency, in total and per day."""

    paid: Paid
    chart: BarChart


@dataclass(frozen=True)
class Overview:
    """Statistics and the charts that show them."""

    statistics: Statistics

    @property
    def days(self) -> Sequence[Day]:
        return self.statistics.by_day

    @cached_property
    def payments_chart(self) -> BarChart:
        return bar_chart(
            [day.payments for day in self.days],
            parts=[day.succeeded for day in self.days],
            titles=[
                f"{day.date}: {grouped(day.payments)} payments, {grouped(day.succeeded)} succeeded" for day in self.days
            ],
        )

    @cached_property
    def success_chart(self) -> LineChart:
        percents = (day.success_percent for day in self.days)
        return line_chart([None if percent is None else percent / 100 for percent in percents])

    @cached_property
    def paid_charts(self) -> list[PaidChart]:
        """Return the charts of the most frequent currencies."""
        most_frequent = self.statistics.paid[:CURRENCY_CHARTS_MAX]
        return [PaidChart(paid, self.paid_chart(index, paid.currency)) for index, paid in enumerate(most_frequent)]

    def paid_chart(self, currency_index: int, currency: str) -> BarChart:
        amounts = [day.paid[currency_index] for day in self.days]
        titles = [f"{day.date}: {money(day.paid[currency_index])} {currency}" for day in self.days]
        return bar_chart(amounts, parts=amounts, titles=titles)

    @property
    def paid_without_chart(self) -> list[Paid]:
        return self.statistics.paid[CURRENCY_CHARTS_MAX:]


def overview_context(request: HttpRequest) -> dict[str, Any]:
    """Return the start page's template context: the form, and the overview if the form is valid."""
    form = AccessForm.from_query(request.GET)
    if not form.is_valid():
        return {"form": form}
    today = timezone.now().date()
    days = [today - timedelta(days=number) for number in reversed(range(DAYS))]
    stop_at = time.monotonic() + SUMMING_SECONDS_MAX
    try:
        sum_missing_days(form.access, days=days, has_time=lambda: time.monotonic() < stop_at)
    except OperationalError as error:
        if not (is_timeout(error) or is_locked(error)):
            raise
    return {"form": form, "overview": Overview(Statistics(days, daily_totals(form.access, days=days)))}
