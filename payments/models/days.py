"""Days of a time zone. Totals, periods and the admin use the days of the organization's time zone.

A day begins at its first midnight, and ends where the next day begins. So it can have 23 or 25 hours. Payments have
times in UTC: a UTC day has times of one or two days of a zone.
"""

from calendar import monthrange
from datetime import MINYEAR, UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.db.models import TextChoices

from payments.conf import is_time_zone

DAY = timedelta(days=1)


class DayKind(TextChoices):
    """The time of a payment that decides on its day."""

    PAID = "paid", "By paid day"
    CREATED = "created", "By created day"

    @property
    def column(self) -> str:
        return f"{self.value}_at"

    @property
    def field(self) -> str:
        """Return the member of the record: `paidAt`."""
        return f"{self.value}At"


def validate_time_zone(name: str) -> None:
    """Raise `ValidationError` if a text is not the name of a time zone in IANA's database."""
    if not is_time_zone(name):
        raise ValidationError("Enter the IANA name of a time zone, such as Europe/Amsterdam or UTC.")


def start_of_day(day: date, zone: ZoneInfo) -> datetime:
    """Return the first moment of a day, in UTC; of the first day of the calendar, the first moment that exists."""
    if day == date.min:
        return datetime.min.replace(tzinfo=UTC)
    return datetime.combine(day, time.min, zone).astimezone(UTC)


def end_of_day(day: date, zone: ZoneInfo) -> datetime:
    """Return the first moment after a day, in UTC."""
    return datetime.max.replace(tzinfo=UTC) if day == date.max else start_of_day(day + DAY, zone)


def local_time(moment: datetime, zone: tzinfo) -> datetime:
    """Return a moment as a time in a zone, without the zone; at the ends of the calendar, the first or last time."""
    try:
        local = moment.astimezone(zone)
    except OverflowError:
        local = datetime.min.replace(tzinfo=UTC) if moment.year == MINYEAR else datetime.max.replace(tzinfo=UTC)
    return local.replace(tzinfo=None)


def day_of(moment: datetime, zone: ZoneInfo) -> date:
    """Return the day of a moment. If clocks are put back over midnight, the new day has begun already."""
    day = local_time(moment, zone).date()
    return day if day == date.max or moment < end_of_day(day, zone) else day + DAY


def days_of_utc_day(utc_day: date, zone: ZoneInfo) -> set[date]:
    """Return the days of a zone that have moments of a UTC day."""
    return {day_of(datetime.combine(utc_day, limit, UTC), zone) for limit in (time.min, time.max)}


def days_around(day: date) -> list[date]:
    """Return the day before, the day, and the day after, as far as the calendar has them."""
    return days_between(day - DAY if day > date.min else day, day + DAY if day < date.max else day)


def last_of_month(day: date) -> date:
    return day.replace(day=monthrange(day.year, day.month)[1])


def days_between(first: date, last: date) -> list[date]:
    """Return the days from the first to the last, both included."""
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]
