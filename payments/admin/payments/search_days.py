"""Days in the search box: `24/11/2026`, `24 Nov`, `Tuesday`, `October 2026`, `last week`.

Without a year, a day or month is the last one that has begun.
"""

import re
from contextlib import suppress
from datetime import date, timedelta

from django.core.exceptions import ValidationError

from payments.admin.forms import check_year
from payments.admin.periods import Period, Preset, preset_period, start_of
from payments.models.days import DAY, last_of_month

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
WEEKDAY = (
    r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
)
PRESETS = {preset.label.lower(): preset for preset in Preset if preset != Preset.CUSTOM}
PRESET = "|".join(PRESETS).replace(" ", r"\s+")

TIME = r"(?:,?[T\s][0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?\s?(?:Z|UTC|[+-][0-9:]+)?)?"
YEAR, NUMBER, DAY_NUMBER = r"(?P<year>(?:19|20)[0-9]{2})", r"(?P<month>0?[1-9]|1[0-2])", r"(?P<day>[0-9]{1,2})"

# Where both numbers can be the month, the first one is the day.
FORMS = (
    rf"(?P<preset>{PRESET})",
    rf"{YEAR}(?P<sign>[-/.]){NUMBER}(?P=sign){DAY_NUMBER}{TIME}",
    rf"{DAY_NUMBER}(?P<sign>[-/.]){NUMBER}(?P=sign){YEAR}{TIME}",
    rf"{NUMBER}/{DAY_NUMBER}/{YEAR}",
    rf"{DAY_NUMBER}/{NUMBER}",
    rf"{NUMBER}/{DAY_NUMBER}",
    rf"(?:{WEEKDAY},?\s)?{DAY_NUMBER}(?:\.|st|nd|rd|th)?[\s/-]+(?:of\s)?{MONTH}(?:[\s,/-]+{YEAR}{TIME})?",
    rf"(?:{WEEKDAY},?\s)?{MONTH}\s{DAY_NUMBER}(?:st|nd|rd|th)?(?:,?\s{YEAR})?",
    rf"{MONTH}[\s,/-]+{YEAR}",
    rf"(?P<last>last\s)?{MONTH}",
    rf"(?P<last>last\s)?(?P<weekday>{WEEKDAY})",
    rf"{YEAR}-(?P<month>[0-9]{{2}})",
)

LEAP_YEARS_MAX = 8  # from one 29 February to the next


def days_of(match: re.Match[str], *, today: date) -> Period | None:
    """Return the days of a text with one of the forms; None if there are no such days."""
    parts = {name: text.lower() for name, text in match.groupdict().items() if text}
    try:
        period = read_days(parts, today=today)
        check_year(period.first)
    except (ValueError, ValidationError):
        return None
    return period


def read_days(parts: dict[str, str], *, today: date) -> Period:
    """Return the days of the parts of a form.

    :raises ValueError: there are no such days
    """
    if "preset" in parts:
        return preset_period(PRESETS[" ".join(parts["preset"].split())], today=today)
    if "weekday" in parts:
        back = (today.weekday() - WEEKDAYS.index(parts["weekday"][:3])) % 7
        day = today - timedelta(days=back or (7 if "last" in parts else 0))
        return Period(day, day)
    month = parts["month"]
    number = int(month) if month.isdecimal() else MONTHS.index(month[:3]) + 1
    day_number = int(parts.get("day", 1))
    if "year" in parts:
        first = date(int(parts["year"]), number, day_number)
    else:
        first = last_day(number, day_number, until=start_of(today, "month") - DAY if "last" in parts else today)
    return Period.of_dates(first, first if "day" in parts else last_of_month(first))


def last_day(month: int, day: int, *, until: date) -> date:
    """Return the last such day of a year.

    :raises ValueError: no year has this day
    """
    for year in range(until.year, until.year - LEAP_YEARS_MAX - 1, -1):
        with suppress(ValueError):
            if (candidate := date(year, month, day)) <= until:
                return candidate
    raise ValueError


def meaning_of(period: Period) -> str:
    """Return `Created on Tuesday, 24 November 2026` for a day, and `October 2026` for more days."""
    if period.first == period.last:
        return f"Created on {period.first:%A}, {period}"
    return str(period)
