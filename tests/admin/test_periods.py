"""Periods: presets, dates, and the period before."""

from datetime import date, timedelta

import pytest
from django.http import QueryDict

from payments.admin.forms import AccessForm, PeriodFields
from payments.admin.periods import DateRange, Period, Preset, preset_period

TODAY = date(2026, 3, 31)


def days(first: str, last: str, unit: str = "") -> Period:
    return Period(date.fromisoformat(first), date.fromisoformat(last), unit)


def parts(first: str, last: str) -> list[Period]:
    period = days(first, last)
    return period.divided_by(period.part_unit)


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("today", days("2026-03-31", "2026-03-31")),
        ("yesterday", days("2026-03-30", "2026-03-30")),
        ("7d", days("2026-03-25", "2026-03-31")),
        ("30d", days("2026-03-02", "2026-03-31")),
        ("90d", days("2026-01-01", "2026-03-31")),
        ("week", days("2026-03-30", "2026-03-31", "week")),
        ("last-week", days("2026-03-23", "2026-03-29", "week")),
        ("month", days("2026-03-01", "2026-03-31", "month")),
        ("last-month", days("2026-02-01", "2026-02-28", "month")),
        ("quarter", days("2026-01-01", "2026-03-31", "quarter")),
        ("last-quarter", days("2025-10-01", "2025-12-31", "quarter")),
        ("year", days("2026-01-01", "2026-03-31", "year")),
        ("last-year", days("2025-01-01", "2025-12-31", "year")),
    ],
)
def test_presets_are_periods_of_the_calendar(preset: str, expected: Period) -> None:
    form = PeriodFields({"period": preset})

    assert preset_period(preset, today=TODAY) == expected
    assert form.is_valid()
    assert form.date_range(today=TODAY) == (expected.first, expected.last)


def test_every_preset_but_custom_has_a_period() -> None:
    lengths = [preset_period(preset, today=TODAY).length for preset in Preset if preset != Preset.CUSTOM]

    assert lengths == [1, 1, 7, 30, 90, 2, 7, 31, 28, 90, 92, 90, 365]


@pytest.mark.parametrize(
    ("first", "last", "unit"),
    [
        ("2026-10-01", "2026-10-31", "month"),
        ("2028-02-01", "2028-02-29", "month"),
        ("2026-10-05", "2026-10-11", "week"),
        ("2026-10-01", "2026-12-31", "quarter"),
        ("2026-01-01", "2026-12-31", "year"),
        ("2026-10-01", "2026-10-30", ""),
        ("2026-10-06", "2026-10-12", ""),
        ("2026-11-01", "2027-01-31", ""),
    ],
)
def test_dates_of_a_unit_of_the_calendar_are_recognized(first: str, last: str, unit: str) -> None:
    assert Period.of_dates(date.fromisoformat(first), date.fromisoformat(last)).unit == unit


@pytest.mark.parametrize(
    ("unit", "period", "before", "year"),
    [
        ("", "2026-03-31 2026-03-31", "2026-03-30 2026-03-30", "2025-03-31 2025-03-31"),
        ("", "2026-03-02 2026-03-31", "2026-01-31 2026-03-01", "2025-03-02 2025-03-31"),
        ("week", "2026-11-16 2026-11-22", "2026-11-09 2026-11-15", "2025-11-17 2025-11-23"),
        ("week", "2026-11-23 2026-11-27", "2026-11-16 2026-11-20", "2025-11-24 2025-11-28"),
    ],
)
def test_period_is_compared_with_others(unit: str, period: str, before: str, year: str) -> None:
    compared, *expected = (days(text[:10], text[11:], unit) for text in (period, before, year))

    assert [compared.compared_with(comparison) for comparison in ("before", "year")] == expected


@pytest.mark.parametrize(
    ("first", "last", "title", "sentence"),
    [
        ("2026-10-07", "2026-10-07", "7 October 2026", "on 7 October 2026"),
        ("2026-10-01", "2026-10-31", "October 2026", "from 1 to 31 October 2026"),
        ("2026-10-01", "2026-10-15", "1 to 15 October 2026", "from 1 to 15 October 2026"),
        ("2026-09-28", "2026-10-04", "28 September to 4 October 2026", "from 28 September to 4 October 2026"),
        ("2025-12-29", "2026-01-04", "29 December 2025 to 4 January 2026", "from 29 December 2025 to 4 January 2026"),
        ("2026-07-01", "2026-09-30", "July to September 2026", "from 1 July to 30 September 2026"),
        ("2026-01-01", "2026-12-31", "2026", "from 1 January to 31 December 2026"),
        ("2025-11-01", "2026-01-31", "November 2025 to January 2026", "from 1 November 2025 to 31 January 2026"),
    ],
)
def test_period_has_a_title_and_a_text_for_sentences(first: str, last: str, title: str, sentence: str) -> None:
    period = days(first, last)

    assert str(period) == title
    assert str(DateRange(period.first, period.last)) == sentence


def test_open_periods_have_a_text_for_sentences() -> None:
    texts = [str(days) for days in (DateRange(), DateRange(TODAY, None), DateRange(None, TODAY))]

    assert texts == ["", "since 31 March 2026", "until 31 March 2026"]


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
    assert [f"{part.first}" for part in parts(first, last)] == expected


def test_parts_of_a_long_period_are_weeks_from_monday_to_sunday() -> None:
    quarter, longer = parts("2026-01-01", "2026-04-02"), parts("2026-01-01", "2026-04-03")

    weeks = list(map(str, longer))
    assert (len(quarter), len(weeks)) == (92, 14)
    assert weeks[:2] == ["1 to 4 January 2026", "5 to 11 January 2026"]
    assert weeks[-1] == "30 March to 3 April 2026"


@pytest.mark.parametrize("first", ["2026-01-04", "2026-01-05", "2026-01-06"])  # Sunday to Tuesday
@pytest.mark.parametrize("last", ["2026-12-27", "2026-12-28", "2026-12-29"])  # Sunday to Tuesday
def test_weeks_have_each_day_of_the_period_once(first: str, last: str) -> None:
    assert [day for week in parts(first, last) for day in week.days] == days(first, last).days


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
    assert (form["period"].value() or "") == form.cleaned_data["period"] == preset
    assert form.date_range(today=TODAY) == expected


@pytest.mark.parametrize(
    ("values", "errors"),
    [
        ({"since": "2026-03-02", "until": "2026-03-01"}, {"until": ["Enter a date on or after From."]}),
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


def test_preset_replaces_dates() -> None:
    form = PeriodFields(QueryDict("period=7d&since=2026-01-01&until=soon"))

    assert form.is_valid()
    assert form.date_range(today=TODAY) == DateRange(date(2026, 3, 25), TODAY)


class Combined(PeriodFields, AccessForm):
    """A form with a period, an organization and a mode."""


def test_fields_can_be_added_to_another_form() -> None:
    assert list(Combined().fields) == ["organization", "mode", "period", "since", "until", "by"]
