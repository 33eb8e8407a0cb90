"""A chart of money: a bar for each part of a period, and a line for the period that it is compared with.

The page draws it as SVG. All lengths are percent of the chart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from payments.admin.periods import Period

HEIGHT_MIN = 1.0  # of the bar of a positive amount
LABELS_MAX = 6  # have room on a phone
DAYS_WITH_LABELS_MAX = 7  # longer periods have labels at Mondays


class Part(NamedTuple):
    """What was paid in a part of the period, its list, and the part of the compared period at the same place."""

    period: Period
    paid: int
    href: str
    compared: Period | None
    compared_paid: int
    style: str  # `current` if it has not ended, `missing` if some of its days have no totals

    def __str__(self) -> str:
        return part_text(self.period)

    @property
    def compared_text(self) -> str:
        return part_text(self.compared) if self.compared else ""


class Chart(NamedTuple):
    """The drawing, and the texts of its axis from the top to zero."""

    bars: Sequence[tuple[Part, float, float]]  # the left side of the part's column, and the upper end of its bar
    width: float  # of a column
    line: str  # the points of an SVG polyline
    ticks: Sequence[tuple[float, str]]  # the place of a mark, and its label if there is room
    axis: Sequence[str]


def money_chart(parts: Sequence[Part], *, unit: str) -> Chart:
    """Return the chart of parts, which are days, weeks or months."""
    top = round_up(max(max(part.paid, part.compared_paid) for part in parts))
    width = 100 / len(parts)
    bars = [(part, round(index * width, 2), upper_end(part.paid, top)) for index, part in enumerate(parts)]
    line = [
        f"{(index + 0.5) * width:.2f},{upper_end(part.compared_paid, top)}"
        for index, part in enumerate(parts)
        if part.compared
    ]
    return Chart(bars, round(width, 2), " ".join(line), ticks([part.period for part in parts], unit), axis_texts(top))


def upper_end(amount: int, top: int) -> float:
    """Return the distance of a bar from the top. A positive amount has a visible bar, a negative amount has none."""
    return round(100 - max(HEIGHT_MIN, 100 * amount / top), 1) if amount > 0 else 100.0


def round_up(hundredths: int) -> int:
    """Return the next amount that is 1, 2, 3, 4, 6 or 8 times a power of ten, at least 1. Its half is round too."""
    power = 100
    while True:
        for factor in (1, 2, 3, 4, 6, 8):
            if hundredths <= power * factor:
                return power * factor
        power *= 10


def axis_texts(top: int) -> list[str]:
    """Return the texts of an amount, of half of it, and of zero: `20,000`, `2.5 M`."""
    size, unit = (10**8, " M") if top >= 10**8 else (100, "")
    return [*(f"{number / size:,.2f}".rstrip("0").rstrip(".") + unit for number in (top, top // 2)), "0"]


def ticks(periods: Sequence[Period], unit: str) -> list[tuple[float, str]]:
    """Return the marks of Mondays, of first days of months, or of half years; in a short period, of each day."""
    texts = [tick_text(period, unit, is_short=len(periods) <= DAYS_WITH_LABELS_MAX) for period in periods]
    marked = [index for index, text in enumerate(texts) if text]
    labelled = set(marked[:: -(-len(marked) // LABELS_MAX) or 1])
    width = 100 / len(periods)
    return [(round((index + 0.5) * width, 2), texts[index] if index in labelled else "") for index in marked]


def tick_text(period: Period, unit: str, *, is_short: bool) -> str:
    """Return the label of the mark of a part; an empty text if it has no mark."""
    first = period.first
    match unit:
        case "day":
            return f"{first:%-d %b}" if is_short or first.weekday() == 0 else ""
        case "week":
            return next((f"{day:%b}" for day in period.days if day.day == 1), "")
    return f"{first:%b %Y}" if first.month in {1, 7} else ""


def part_text(period: Period) -> str:
    """Return the text of a day, week or month: `Mon 2 November 2026`."""
    return f"{period.first:%a} {period}" if period.length == 1 else str(period)
