"""Days of time zones: where they begin and end."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from payments.conf import time_zone_names
from payments.models.days import day_of, days_between, days_of_utc_day, end_of_day, start_of_day

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("zone", "day", "start", "hours"),
    [
        ("UTC", "2026-10-25", "2026-10-25T00:00", 24),
        ("Europe/Amsterdam", "2026-10-25", "2026-10-24T22:00", 25),
        ("Europe/Amsterdam", "2026-03-29", "2026-03-28T23:00", 23),
        ("Asia/Kathmandu", "2026-10-25", "2026-10-24T18:15", 24),
        ("Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30", 23.5),
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00", 23),  # clocks are put forward at midnight
        ("Africa/Cairo", "2026-10-29", "2026-10-28T21:00", 25),  # and back
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00", 0),  # this day did not exist
        ("America/St_Johns", "2010-11-07", "2010-11-07T02:30", 25),  # clocks were put back at 00:01
    ],
)
def test_day_begins_at_its_first_midnight(zone: str, day: str, start: str, hours: float) -> None:
    begin, end = (limit(date.fromisoformat(day), ZoneInfo(zone)) for limit in (start_of_day, end_of_day))

    assert begin == datetime.fromisoformat(start).replace(tzinfo=UTC)
    assert end - begin == hours * HOUR


@pytest.mark.parametrize(
    ("zone", "year"),
    [("Europe/Amsterdam", 2026), ("Africa/Cairo", 2026), ("Pacific/Apia", 2011), ("America/St_Johns", 2010)],
)
def test_each_moment_is_within_its_day(zone: str, year: int) -> None:
    moments = [datetime(year, 1, 1, tzinfo=UTC) + number * HOUR / 2 for number in range(365 * 48)]
    info = ZoneInfo(zone)

    for moment in moments:
        day = day_of(moment, info)
        assert start_of_day(day, info) <= moment < end_of_day(day, info)
        assert day in days_of_utc_day(moment.date(), info)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Amsterdam", "America/New_York"])
@pytest.mark.parametrize("day", [date.min, date.max])
def test_ends_of_the_calendar_have_days(zone: str, day: date) -> None:
    info = ZoneInfo(zone)

    assert start_of_day(day, info) <= end_of_day(day, info)
    assert day in days_of_utc_day(day, info)


def test_days_between_include_both() -> None:
    assert days_between(date(2026, 2, 27), date(2026, 3, 1)) == [date(2026, 2, 27), date(2026, 2, 28), date(2026, 3, 1)]


def test_names_of_zones_have_places_but_no_files_of_the_system() -> None:
    assert {"UTC", "Europe/Amsterdam", "Asia/Kathmandu"}.issubset(time_zone_names())
    assert {"localtime", "Factory", "posixrules"}.isdisjoint(time_zone_names())
