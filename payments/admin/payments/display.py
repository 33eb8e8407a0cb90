"""A payment prepared for templates: what staff ask for first, a timeline, and readable names."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.contrib.admin.utils import quote
from django.urls import reverse

from payments.export.bookkeeping import text_members, total_of, words
from payments.listing.search_terms import NAMES
from payments.models import Status, StatusChange
from payments.models.identifiers import change_time
from payments.record import parse_record_time
from payments.rows import RowValues, build_record

UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))

# A payment in one of these states was not paid, and never will be.
FINAL_WITHOUT_PAYMENT = {Status.FAILED, Status.CANCELED, Status.EXPIRED}

# The names of members, without separators and in lower case, that hold the merchant's order number; the first one wins.
ORDER_NAMES = ("order", "orderid", "ordernumber", "orderno", "orderreference")

# The members of the details that say why a payment failed; the first one wins.
REASON_NAMES = ("failureReason", "failureMessage", "statusReason")


class Event(NamedTuple):
    """A point on a timeline, in the past or in the future."""

    name: str
    time: datetime | None  # None: the record has no time for it
    status: str = ""  # the style of the event
    since_creation: str = ""
    import_id: int = 0  # of the import that reported it; 0: unknown


@dataclass(frozen=True)
class PaymentDisplay:
    """A payment's row, with the values that templates need. A list needs no more than the row."""

    row: RowValues
    change_id: int | None = None  # of the last change; None if it is unknown
    anonymized_at: datetime | None = None
    status_changes: Sequence[StatusChange] = ()

    @cached_property
    def record(self) -> Any:
        return build_record(self.row)

    @cached_property
    def named_details(self) -> dict[str, str]:
        return dict(text_members(bytes(self.record.details or b"{}")))

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
    def refunded(self) -> int:
        """Return the refunded amount in hundredths; 0 if none is known."""
        return total_of(self.row).refunded

    @property
    def card(self) -> str:
        """Return the label and the last four digits of the card, such as `Visa •• 4242`; an empty text without one."""
        number = self.named_details.get("cardNumber", "").replace(" ", "")
        return f"{self.named_details.get('cardLabel', '')} •• {number[-4:]}".lstrip() if number else ""

    @property
    def order(self) -> str:
        """Return the order number of the metadata; an empty text if there is none, or if the description has it."""
        members = {name.lower().replace("_", "").replace("-", ""): value for name, value in self.metadata}
        order = next((members[name] for name in ORDER_NAMES if members.get(name)), "")
        return "" if order in self.record.description else order

    @property
    def name(self) -> str:
        """Return the name of the card holder or of the consumer; an empty text without one."""
        return next((self.named_details[name] for name in NAMES if self.named_details.get(name)), "")

    @property
    def failure_reason(self) -> str:
        """Return why the payment failed, in words: `insufficient funds` for `insufficient_funds`."""
        members = json.loads(bytes(self.record.details or b"{}"))
        for reason in filter(None, map(members.get, REASON_NAMES)):
            text = reason.get("message") or reason.get("code") if isinstance(reason, dict) else reason
            if isinstance(text, str):
                return text.replace("_", " ")
        return ""

    @property
    def timeline(self) -> list[Event]:
        """Return the events, oldest first. An event without a time follows the creation."""
        created, *others = (*record_events(self), *service_events(self))
        return [created, *sorted(others, key=lambda event: event.time or self.created_at)]

    @property
    def metadata(self) -> list[tuple[str, str]]:
        return text_members(bytes(self.record.metadata))

    @property
    def details(self) -> list[tuple[str, str]]:
        """Return the details with the names as words: `Card number` for `cardNumber`."""
        return [(words(name), value) for name, value in self.named_details.items()]


def payment_href(payment_id: str) -> str:
    return reverse("admin:payments_payment_change", args=[quote(payment_id)])


def record_events(payment: PaymentDisplay) -> Iterator[Event]:
    """Yield the events of the record. A payment that ended unpaid ends with its status.

    Of these statuses, a record has a time only for the expiry.
    """
    record = payment.record
    yield event("Created", record.created_at, record)
    if record.status not in FINAL_WITHOUT_PAYMENT:
        for name, text in (("Paid", record.paid_at), ("Expires", record.expires_at)):
            if text:
                yield event(name, text, record)
    elif record.status == Status.EXPIRED and record.expires_at:
        yield event("Expired", record.expires_at, record)
    elif record.status not in {change.status for change in payment.status_changes}:
        yield Event(Status(record.status).label, None, record.status)


def service_events(payment: PaymentDisplay) -> Iterator[Event]:
    """Yield what this service has noted: reported statuses, the last update, and the removal of personal data."""
    for change in payment.status_changes:
        name = f"Reported as {Status(change.status).label.lower()}"
        yield Event(name, change_time(change.change_id), change.status, import_id=change.import_id)
    if payment.anonymized_at:
        yield Event("Personal data removed", payment.anonymized_at)
    elif payment.change_id and payment.change_id not in {change.change_id for change in payment.status_changes}:
        yield Event("Last updated by an import", change_time(payment.change_id))


def event(name: str, text: str, record: Any) -> Event:
    time = parse_record_time(text)
    return Event(name, time, name.lower(), format_duration(time - parse_record_time(record.created_at)))


def format_duration(duration: timedelta) -> str:
    """Return a duration in its two largest units, such as `3 h 5 min`; an empty text if it is zero or negative."""
    seconds = max(0, round(duration.total_seconds()))
    parts = []
    for unit, unit_seconds in UNITS:
        number, seconds = divmod(seconds, unit_seconds)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])
