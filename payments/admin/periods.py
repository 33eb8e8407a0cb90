"""Periods of days, and the form fields that select one: a preset such as the last 30 days, or two dates.

All days are UTC days, like the times of payments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import TextChoices
from django.utils import timezone


class Preset(TextChoices):
    """The values of the field `period`. All but `CUSTOM` end today."""

    TODAY = "today", "Today"
    DAYS_7 = "7d", "Last 7 days"
    DAYS_30 = "30d", "Last 30 days"
    DAYS_90 = "90d", "Last 90 days"
    MONTH = "month", "This month"
    CUSTOM = "custom", "Custom dates"


# The numbers of days, today included.
LENGTHS = {Preset.TODAY: 1, Preset.DAYS_7: 7, Preset.DAYS_30: 30, Preset.DAYS_90: 90}

# In these years, every date has a day, a month and a period of a year before and after it.
YEARS = range(1900, 9999)

# An export in parts can begin before midnight, and time zones differ by a day.
TODAY_DIFFERENCE_MAX = timedelta(days=2)

# A longer period has weeks instead of days, so that charts are readable on a phone: a quarter has up to 92 days.
DAILY_PARTS_MAX = 92


class DateRange(NamedTuple):
    """The first and the last day (UTC), both included. None leaves that side open."""

    first: date | None = None
    last: date | None = None


@dataclass(frozen=True)
class Period:
    """The days (UTC) from `first` to `last`, both included."""

    first: date
    last: date
    starts_month: bool = False  # whether it is a month up to today, to be compared with the month before

    @property
    def length(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def days(self) -> list[date]:
        return [self.first + timedelta(days=number) for number in range(self.length)]

    @property
    def parts(self) -> list[Period]:
        """Return the period as days or, if there would be too many, as weeks. Weeks begin on Mondays.

        The first and the last week contain only days of the period.
        """
        if not self.has_weeks:
            return [Period(day, day) for day in self.days]
        mondays = [day for day in self.days[1:] if day.weekday() == 0]
        firsts, lasts = [self.first, *mondays], [*(day - timedelta(days=1) for day in mondays), self.last]
        return list(map(Period, firsts, lasts))

    @property
    def has_weeks(self) -> bool:
        return self.length > DAILY_PARTS_MAX

    @property
    def previous(self) -> Period:
        """Return the period of equal length directly before, or the same days of the month before.

        The month before can have fewer days: 1 to 31 March follow 1 to 28 February.
        """
        last = self.first - timedelta(days=1)
        if not self.starts_month:
            return Period(self.first - timedelta(days=self.length), last)
        return Period(last.replace(day=1), last.replace(day=min(last.day, self.last.day)), starts_month=True)

    def __str__(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"


def join_days(days: Sequence[date]) -> list[Period]:
    """Return the periods of consecutive days in ascending `days`."""
    periods: list[Period] = []
    for day in days:
        if periods and periods[-1].last + timedelta(days=1) == day:
            periods[-1] = Period(periods[-1].first, day)
        else:
            periods.append(Period(day, day))
    return periods


def preset_period(preset: str, *, today: date) -> Period:
    """Return the period of a preset other than `custom`, which ends today."""
    if preset == Preset.MONTH:
        return Period(today.replace(day=1), today, starts_month=True)
    return Period(today - timedelta(days=LENGTHS[Preset(preset)] - 1), today)


def current_day() -> date:
    """Return today (UTC)."""
    return timezone.now().date()


def refuse_reversed(values: Mapping[str, Any], first: str, last: str, *, label: str) -> None:
    """Raise `ValidationError` if the last day is before the first; `label` is the label of the first one's field."""
    since, until = values.get(first), values.get(last)
    if since and until and until < since:
        raise ValidationError({last: f"Enter a date on or after {label}."})


def check_year(day: date) -> None:
    """Raise `ValidationError` if the calendar could end before the days that are computed from this one."""
    if day.year not in YEARS:
        raise ValidationError(f"Enter a date in the years {YEARS[0]} to {YEARS[-1]}.")


def check_today(day: date) -> None:
    if abs(day - current_day()) > TODAY_DIFFERENCE_MAX:
        raise ValidationError("The list is of another day. Open it again.")


def date_field(label: str) -> forms.DateField:
    widget = forms.DateInput(attrs={"type": "date"})
    return forms.DateField(label=label, required=False, widget=widget, validators=[check_year])


class PeriodFields(forms.Form):
    """Selects days: a preset, or dates. Without either, all days are selected."""

    period = forms.ChoiceField(choices=[("", "All days"), *Preset.choices], required=False)
    since = date_field("From")
    until = date_field("To")

    def clean(self) -> dict[str, Any]:
        """Validate the dates, and set `period` to `custom` if it is empty and there are dates."""
        values = super().clean() or self.cleaned_data
        refuse_reversed(values, "since", "until", label="From")
        if values.get("since") or values.get("until"):
            if values.get("period") not in {None, "", Preset.CUSTOM}:  # another preset has its own dates
                raise ValidationError({"period": f"Choose {Preset.CUSTOM.label}, or clear From and To."})
            values["period"] = Preset.CUSTOM
        elif values.get("period") == Preset.CUSTOM and not self.errors:
            raise ValidationError({"since": "Enter a date in From or To, or choose another period."})
        return values

    def date_range(self, *, today: date) -> DateRange:
        preset = self.cleaned_data["period"]
        if preset in {"", Preset.CUSTOM}:
            return DateRange(self.cleaned_data["since"], self.cleaned_data["until"])
        period = preset_period(preset, today=today)
        return DateRange(period.first, period.last)
