"""Periods of days: presets such as last month, the period before, and the text of a period.

The days are those of the organization's time zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, timedelta, tzinfo
from typing import NamedTuple

from django.db.models import TextChoices
from django.utils import timezone

from payments.models.days import DAY, days_between


class Preset(TextChoices):
    """The values of the field `period`."""

    TODAY = "today", "Today"
    YESTERDAY = "yesterday", "Yesterday"
    DAYS_7 = "7d", "Last 7 days"
    DAYS_30 = "30d", "Last 30 days"
    DAYS_90 = "90d", "Last 90 days"
    WEEK = "week", "This week"
    LAST_WEEK = "last-week", "Last week"
    MONTH = "month", "This month"
    LAST_MONTH = "last-month", "Last month"
    QUARTER = "quarter", "This quarter"
    LAST_QUARTER = "last-quarter", "Last quarter"
    YEAR = "year", "This year"
    LAST_YEAR = "last-year", "Last year"
    CUSTOM = "custom", "Custom dates"


# The numbers of days, today included.
LENGTHS = {Preset.DAYS_7: 7, Preset.DAYS_30: 30, Preset.DAYS_90: 90}

# The parts of the calendar that begin and end on certain days.
UNITS = ("week", "month", "quarter", "year")

WEEKS_OF_YEAR = timedelta(weeks=52)

# A longer period has weeks or months instead of days, so that charts are readable on a phone.
DAILY_PARTS_MAX, WEEKLY_PARTS_MAX = 92, 366


class Comparison(TextChoices):
    """The period with which a period is compared."""

    BEFORE = "before", "the period before"
    YEAR = "year", "the year before"


class DateRange(NamedTuple):
    """The first and the last day, both included. None leaves that side open."""

    first: date | None = None
    last: date | None = None

    def __str__(self) -> str:
        """Return the days for a sentence: `from 1 to 31 October 2026`; an empty text if both sides are open."""
        if self.first and self.last:
            return f"{'on' if self.first == self.last else 'from'} {text_of_days(self.first, self.last)}"
        day = self.first or self.last
        return f"{'since' if self.first else 'until'} {text_of_days(day, day)}" if day else ""


@dataclass(frozen=True)
class Period:
    """The days from `first` to `last`, both included.

    `unit` is one of `UNITS` if the period is one, or the part of one that ends today.
    """

    first: date
    last: date
    unit: str = ""

    @classmethod
    def of_dates(cls, first: date, last: date) -> Period:
        """Return the period; it is a unit of the calendar if the dates are those of one."""
        ends = {unit: start_of_next(first, unit) - DAY for unit in UNITS if start_of(first, unit) == first}
        return cls(first, last, next((unit for unit, end in ends.items() if end == last), ""))

    @property
    def length(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def days(self) -> list[date]:
        return days_between(self.first, self.last)

    @property
    def part_unit(self) -> str:
        """Return what the period is divided into for a chart: `day`, `week` or `month`."""
        if self.length <= DAILY_PARTS_MAX:
            return "day"
        return "week" if self.length <= WEEKLY_PARTS_MAX else "month"

    def divided_by(self, unit: str) -> list[Period]:
        """Return the days, weeks from Monday, or months. The first and the last contain only days of the period."""
        if unit == "day":
            return [Period(day, day) for day in self.days]
        firsts = [day for day in self.days if day == self.first or start_of(day, unit) == day]
        lasts = [*(day - DAY for day in firsts[1:]), self.last]
        return list(map(Period, firsts, lasts))

    def compared_with(self, comparison: str) -> Period:
        """Return the period before, or the same days of the year before; for a week, the days 52 weeks before.

        The period before a unit, or its first days, is the unit before, or its first days. Otherwise, it has as many
        days as this one.
        """
        is_whole = self.unit != "" and start_of_next(self.first, self.unit) - DAY == self.last
        if comparison == Comparison.YEAR:
            if self.unit == "week":
                return Period(self.first - WEEKS_OF_YEAR, self.last - WEEKS_OF_YEAR, self.unit)
            first, last = year_before(self.first), year_before(self.last)
            # A whole unit can have another length in another year.
            return Period(first, start_of_next(first, self.unit) - DAY if is_whole else last, self.unit)
        last = self.first - DAY
        if not self.unit:
            return Period(self.first - timedelta(days=self.length), last)
        first = start_of(last, self.unit)
        return Period(first, last if is_whole else min(last, first + (self.last - self.first)), self.unit)

    def __str__(self) -> str:
        """Return the days as a title: `October 2026`, `1 to 15 October 2026`."""
        return text_of_days(self.first, self.last, names_months=True)


def text_of_days(first: date, last: date, *, names_months: bool = False) -> str:
    """Return two days as text, without what they have in common. `names_months`: whole months have no days."""
    is_whole = names_months and first.day == 1 and (last + DAY).day == 1
    day = "" if is_whole else "%-d "
    if first == last or (is_whole and (first.year, first.month) == (last.year, last.month)):
        return first.strftime(f"{day}%B ") + str(first.year)
    if is_whole and (first.month, last.month, first.year) == (1, 12, last.year):
        return str(first.year)
    same_month, same_year = (first.year, first.month) == (last.year, last.month), first.year == last.year
    start = first.strftime(f"{day}" if same_month else f"{day}%B ") + ("" if same_year else f"{first.year} ")
    return f"{start}to {last.strftime(f'{day}%B ')}{last.year}"


def start_of(day: date, unit: str) -> date:
    """Return the first day of the week, month, quarter or year of a day."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    return day.replace(month=(day.month - 1) // months * months + 1, day=1)


def start_of_next(day: date, unit: str) -> date:
    """Return the first day of the next week, month, quarter or year."""
    longest = {"week": 7, "month": 31, "quarter": 92, "year": 366}[unit]
    return start_of(start_of(day, unit) + timedelta(days=longest), unit)


def year_before(day: date) -> date:
    """Return the same day of the year before; 28 February for 29 February."""
    return (day.replace(day=28) if (day.month, day.day) == (2, 29) else day).replace(year=day.year - 1)


def preset_period(preset: str, *, today: date) -> Period:
    """Return the period of a preset other than `custom`."""
    unit = preset.removeprefix("last-")
    if unit in UNITS:
        start = start_of(today, unit)
        return Period(start, today, unit) if preset == unit else Period(start_of(start - DAY, unit), start - DAY, unit)
    if preset == Preset.YESTERDAY:
        return Period(today - DAY, today - DAY)
    return Period(today - timedelta(days=LENGTHS.get(Preset(preset), 1) - 1), today)


def current_day(zone: tzinfo = UTC) -> date:
    """Return today in a time zone."""
    return timezone.now().astimezone(zone).date()
