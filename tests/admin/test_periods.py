"""Periods: presets, dates, and the period before."""

from datetime import date, timedelta

import pytest

from payments.admin.access_form import AccessForm
from payments.admin.periods import DateRange, Period, PeriodFields, Preset, join_days, preset_period

TODAY = date(2026, 3, 31)


def days(first: str, last: str, *, starts_month: bool = False) -> Period:
    return Period(date.fromisoformat(first), date.fromisoformat(last), starts_month=starts_month)


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("today", days("2026-03-31", "2026-03-31")),
        ("7d", days("2026-03-25", "2026-03-31")),
        ("30d", days("2026-03-02", "2026-03-31")),
        ("90d", days("2026-01-01", "2026-03-31")),
        ("month", days("2026-03-01", "2026-03-31", starts_month=True)),
    ],
)
def test_presets_end_today(preset: str, expected: Period) -> None:
    form = PeriodFields({"period": preset})

    assert preset_period(preset, today=TODAY) == expected
    assert form.is_valid()
    assert form.date_range(today=TODAY) == (expected.first, expected.last)


def test_every_preset_but_custom_has_a_period() -> None:
    lengths = [preset_period(preset, today=TODAY).length for preset in Preset if preset != Preset.CUSTOM]

    assert lengths == [1, 7, 30, 90, 31]


@pytest.mark.parametrize(
    ("period", "previous"),
    [
        (days("2026-03-31", "2026-03-31"), days("2026-03-30", "2026-03-30")),
        (days("2026-03-02", "2026-03-31"), days("2026-01-31", "2026-03-01")),
        (days("2024-01-01", "2024-12-31"), days("2022-12-31", "2023-12-31")),
        (
            days("2026-11-01", "2026-11-25", starts_month=True),
            days("2026-10-01", "2026-10-25", starts_month=True),
        ),
        (
            days("2026-03-01", "2026-03-31", starts_month=True),
            days("2026-02-01", "2026-02-28", starts_month=True),
        ),
        (
            days("2026-01-01", "2026-01-01", starts_month=True),
            days("2025-12-01", "2025-12-01", starts_month=True),
        ),
    ],
)
def test_previous_period_ends_before_the_first_day(period: Period, previous: Period) -> None:
    assert period.previous == previous


def test_days_of_a_period_include_the_first_and_the_last() -> None:
    period = days("2024-02-28", "2024-03-01")

    assert period.days == [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)]
    assert len(period.days) == period.length
    assert period.days[-1] - period.days[0] == timedelta(days=2)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2026-01-01", "2026-01-01", ["2026-01-01"]),
        ("2026-01-01", "2026-01-03", ["2026-01-01", "2026-01-02", "2026-01-03"]),
    ],
)
def test_parts_of_a_short_period_are_days(first: str, last: str, expected: list[str]) -> None:
    assert list(map(str, days(first, last).parts)) == expected


def test_parts_of_a_long_period_are_weeks_from_monday_to_sunday() -> None:
    quarter, longer = days("2026-01-01", "2026-04-02"), days("2026-01-01", "2026-04-03")

    weeks = list(map(str, longer.parts))
    assert (len(quarter.parts), len(weeks)) == (92, 14)
    assert weeks[:2] == ["2026-01-01 to 2026-01-04", "2026-01-05 to 2026-01-11"]
    assert weeks[-1] == "2026-03-30 to 2026-04-03"


@pytest.mark.parametrize("first", ["2026-01-04", "2026-01-05", "2026-01-06"])  # Sunday to Tuesday
@pytest.mark.parametrize("last", ["2026-12-27", "2026-12-28", "2026-12-29"])  # Sunday to Tuesday
def test_weeks_have_each_day_of_the_period_once(first: str, last: str) -> None:
    period = days(first, last)

    assert [day for week in period.parts for day in week.days] == period.days


def test_consecutive_days_are_joined() -> None:
    period = days("2026-01-30", "2026-02-02")

    assert list(map(str, join_days([*period.days, date(2026, 2, 4)]))) == ["2026-01-30 to 2026-02-02", "2026-02-04"]
    assert join_days([]) == []


@pytest.mark.parametrize(
    ("values", "preset", "expected"),
    [
        ({}, "", DateRange(None, None)),
        ({"period": ""}, "", DateRange(None, None)),
        ({"since": "2026-03-01"}, "custom", DateRange(date(2026, 3, 1), None)),
        ({"until": "2026-03-01"}, "custom", DateRange(None, date(2026, 3, 1))),
        ({"period": "custom", "until": "2026-03-01"}, "custom", DateRange(None, date(2026, 3, 1))),
        ({"since": "2026-03-01", "until": "2026-03-01"}, "custom", DateRange(date(2026, 3, 1), date(2026, 3, 1))),
    ],
)
def test_dates_are_a_custom_period_and_may_be_open(values: dict[str, str], preset: str, expected: DateRange) -> None:
    form = PeriodFields(values)

    assert form.is_valid()
    assert form.cleaned_data["period"] == preset
    assert form.date_range(today=TODAY) == expected


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        ({"since": "2026-03-02", "until": "2026-03-01"}, {"until": ["Enter a date on or after From."]}),
        (
            {"period": "7d", "since": "2026-03-01"},
            {"period": ["Choose Custom dates, or clear From and To."]},
        ),
        (
            {"period": "custom"},
            {"since": ["Enter a date in From or To, or choose another period."]},
        ),
        ({"period": "custom", "since": "soon"}, {"since": ["Enter a valid date."]}),
        ({"since": "1899-12-31"}, {"since": ["Enter a date in the years 1900 to 9998."]}),
        ({"until": "9999-01-01"}, {"until": ["Enter a date in the years 1900 to 9998."]}),
        ({"period": "8d"}, {"period": ["Select a valid choice. 8d is not one of the available choices."]}),
    ],
)
def test_invalid_periods_are_refused(values: dict[str, str], errors: dict[str, list[str]]) -> None:
    assert PeriodFields(values).errors == errors


class Combined(PeriodFields, AccessForm):
    """A form with a period, an organization and a mode."""


def test_fields_can_be_added_to_another_form() -> None:
    assert list(Combined().fields) == ["organization", "mode", "period", "since", "until"]
