"""The timeline of a payment: its creation, its payment, and its end."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from payments.models import Status

UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))

# A payment in one of these states was not paid, and never will be.
FINAL_WITHOUT_PAYMENT = {Status.FAILED, Status.CANCELED, Status.EXPIRED}


class Event(NamedTuple):
    """A point on a timeline, in the past or in the future."""

    name: str
    time: datetime | None  # None: the record has no time for it
    since_creation: str = ""


def build_timeline(record: Any) -> list[Event]:
    """Return the events of a record, oldest first. A payment that ended unpaid ends with its state."""
    created_at = parse_time(record.created_at)
    if record.status in FINAL_WITHOUT_PAYMENT:
        return [Event("Created", created_at), ending(record)]
    return list(times_of(record))


def ending(record: Any) -> Event:
    """Return the final state of an unpaid payment. A record has a time only for the expiry."""
    name = Status(record.status).label
    if record.status == Status.EXPIRED and record.expires_at:
        return event(name, record.expires_at, record)
    return Event(name, None)


def times_of(record: Any) -> Iterator[Event]:
    times = (("Created", record.created_at), ("Paid", record.paid_at), ("Expires", record.expires_at))
    for text, name in sorted((text, name) for name, text in times if text):
        yield event(name, text, record)


def event(name: str, text: str, record: Any) -> Event:
    time = parse_time(text)
    return Event(name, time, format_duration(time - parse_time(record.created_at)))


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def format_duration(duration: timedelta) -> str:
    """Return a duration in its two largest units, such as `3 h 5 min`; an empty text if it is zero or negative."""
    seconds = max(0, round(duration.total_seconds()))
    parts = []
    for unit, unit_seconds in UNITS:
        number, seconds = divmod(seconds, unit_seconds)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])
