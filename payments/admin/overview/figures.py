"""The figures of the start page: three numbers, a chart and tables. Each leads to the list of exactly its payments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import chain, repeat
from typing import NamedTuple

from payments.admin.overview.charts import Chart, Part, money_chart
from payments.admin.overview.tables import Table, currency_table, method_table, status_table
from payments.admin.overview.totals import FINAL, UNSUCCESSFUL, Lists, PeriodTotals
from payments.admin.periods import Period
from payments.templatetags.texts import grouped, money, percent

FALL_MAX = 5  # points by which the success rate may fall before someone should look
RATED_MIN = 20  # final payments of each period: the rate of fewer payments often falls by chance


class Change(NamedTuple):
    """A change since the compared period: `up`, `down` or nothing, its size, and the text of the figure before."""

    direction: str
    size: str
    before: str

    @classmethod
    def of(cls, difference: float | None, *, unit: str, before: str) -> Change:
        """Return the change. A difference of None has no size."""
        if difference is None:
            return cls("", "", before)
        size = f"{abs(difference):,.1f}"
        return cls("" if size == "0.0" else "up" if difference > 0 else "down", f"{size} {unit}", before)

    @classmethod
    def in_percent(cls, number: int, before: int, *, text: Callable[[int], str]) -> Change:
        """Return the change of a number. A percentage needs a positive number to start from."""
        difference = 100 * (number - before) / before if before > 0 else None
        return cls.of(difference, unit="%", before=text(before))


class Number(NamedTuple):
    """A large number. `change` is None if it is not compared."""

    name: str
    value: str
    change: Change | None
    href: str


@dataclass(frozen=True)
class Overview:
    """The totals of a period as numbers, a chart and tables. Without `before`, the period is not compared."""

    now: PeriodTotals
    before: PeriodTotals | None
    lists: Lists
    today: date

    @property
    def period(self) -> Period:
        return self.now.period

    @property
    def missing(self) -> set[date]:
        return self.now.missing | (self.before.missing if self.before else set())

    @property
    def compared(self) -> PeriodTotals | None:
        """Return the totals of the compared period; None without payments in it, and while days are missing."""
        return None if self.missing or not self.before or self.before.is_empty else self.before

    @cached_property
    def currency(self) -> str:
        """Return the currency with the most payments; an empty text without payments in either period."""
        figures = [*self.now.currencies, *(self.before.currencies if self.before else ())]
        return figures[0].currency if figures else ""

    @cached_property
    def numbers(self) -> list[Number]:
        now, before, lists = self.now, self.compared, self.lists
        paid = now.paid(self.currency)
        paid_change = Change.in_percent(paid, before.paid(self.currency), text=money) if before else None
        count_change = Change.in_percent(now.payments, before.payments, text=grouped) if before else None
        success = before.success_percent if before else None
        rate_change = Change.of(self.points, unit="points", before=percent(success)) if before else None
        numbers = [
            Number("Payments", grouped(now.payments), count_change, lists.counted()),
            Number("Success rate", percent(now.success_percent), rate_change, lists.counted(status=FINAL)),
        ]
        if self.currency:
            numbers.insert(0, Number(f"Paid in {self.currency}", money(paid), paid_change, self.paid_href))
        return numbers

    @property
    def paid_href(self) -> str:
        return self.lists.paid(self.currency)

    @cached_property
    def points(self) -> float | None:
        """Return the change of the success rate in points; None if it is not compared."""
        rate, before = (totals.success_percent if totals else None for totals in (self.now, self.compared))
        return None if rate is None or before is None else rate - before

    @property
    def has_fallen(self) -> bool:
        if self.points is None or not self.compared:
            return False
        is_rated = min(self.now.final_payments, self.compared.final_payments) >= RATED_MIN
        return is_rated and round(self.points, 1) < -FALL_MAX

    @property
    def unsuccessful_href(self) -> str:
        return self.lists.counted(status=UNSUCCESSFUL)

    @cached_property
    def parts(self) -> Sequence[Part]:
        """Return the days, weeks or months, with those of the compared period in the same order."""
        unit = self.period.part_unit
        parts = self.now.paid_in_parts(self.currency, unit)
        before = self.compared.paid_in_parts(self.currency, unit) if self.compared else []
        no_part: tuple[Period | None, int] = (None, 0)
        return [
            Part(period, paid, self.lists.paid(self.currency, part=period), *compared, self.style(period))
            for (period, paid), compared in zip(parts, chain(before, repeat(no_part)), strict=False)
        ]

    def style(self, part: Period) -> str:
        if not self.now.missing.isdisjoint(part.days):
            return "missing"
        return "current" if part.first <= self.today <= part.last else ""

    @cached_property
    def chart(self) -> Chart | None:
        """Return the chart of the main currency; None for a single day, whose bar would repeat the number."""
        has_chart = self.currency and self.period.length > 1
        return money_chart(self.parts, unit=self.period.part_unit) if has_chart else None

    @property
    def tables(self) -> list[Table]:
        now, lists = self.now, self.lists
        tables = (currency_table(now, lists, self.compared), status_table(now, lists))
        return [table for table in (*tables, method_table(now, lists, currency=self.currency)) if table.rows]
