"""A payment prepared for templates: parsed times, a timeline of its creation, payment and end, readable names."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.contrib.admin.utils import quote
from django.urls import reverse

from payments.export.bookkeeping import text_members, words
from payments.models import Status
from payments.models.identifiers import change_time
from payments.record import parse_record_time
from payments.rows import RowValues, build_record

UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))

# A payment in one of these states was not paid, and never will be.
FINAL_WITHOUT_PAYMENT = {Status.FAILED, Status.CANCELED, Status.EXPIRED}


class Event(NamedTuple):
    """A point on a timeline, in the past or in the future."""

    name: str
    time: datetime | None  # None: the record has no time for it
    since_creation: str = ""


@dataclass(frozen=True)
class PaymentDisplay:
    """A payment's row, with the values that templates need."""

    row: RowValues
    change_id: int | None = None  # of the last change; None if it is unknown

    @cached_property
    def record(self) -> Any:
        return build_record(self.row)

    @property
    def href(self) -> str:
        return payment_href(self.record.id)

    @property
    def created_at(self) -> datetime:
        return parse_record_time(self.record.created_at)

    @property
    def paid_at(self) -> datetime | None:
        return parse_record_time(self.record.paid_at) if self.record.paid_at else None

    @property
    def card_end(self) -> str:
        """Return the last four digits of the card, such as `•••• 4242`; an empty text without a card."""
        number = dict(text_members(bytes(self.record.details or b"{}"))).get("cardNumber", "")
        return f"•••• {number[-4:]}" if number else ""

    @property
    def changed_at(self) -> datetime | None:
        """Return when this service last wrote the payment; None if that is unknown."""
        return None if self.change_id is None else change_time(self.change_id)

    @property
    def timeline(self) -> list[Event]:
        return build_timeline(self.record)

    @property
    def metadata(self) -> list[tuple[str, str]]:
        return text_members(bytes(self.record.metadata))

    @property
    def details(self) -> list[tuple[str, str]]:
        """Return the details with the names as words: `Card number` for `cardNumber`."""
        members = text_members(bytes(self.record.details or b"{}"))
        return [(words(name), value) for name, value in members]


def payment_href(payment_id: str) -> str:
    return reverse("admin:payments_payment_change", args=[quote(payment_id)])


def build_timeline(record: Any) -> list[Event]:
    """Return the events of a record, oldest first. A payment that ended unpaid ends with its state.

    Of these states, a record has a time only for the expiry.
    """
    if record.status in FINAL_WITHOUT_PAYMENT:
        end = record.expires_at if record.status == Status.EXPIRED else ""
        return [event("Created", record.created_at, record), event(Status(record.status).label, end, record)]
    times = (("Created", record.created_at), ("Paid", record.paid_at), ("Expires", record.expires_at))
    return [event(name, text, record) for text, name in sorted((text, name) for name, text in times if text)]


def event(name: str, text: str, record: Any) -> Event:
    if not text:
        return Event(name, None)
    time = parse_record_time(text)
    return Event(name, time, format_duration(time - parse_record_time(record.created_at)))


def format_duration(duration: timedelta) -> str:
    """Return a duration in its two largest units, such as `3 h 5 min`; an empty text if it is zero or negative."""
    seconds = max(0, round(duration.total_seconds()))
    parts = []
    for unit, unit_seconds in UNITS:
        number, seconds = divmod(seconds, unit_seconds)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])
