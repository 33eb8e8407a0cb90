"""A payment as staff see it: what its record says, made ready to be read."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.urls import reverse

from payments.api.serializers import record
from payments.links import admin_quoted
from payments.rows import Row

UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


class Event(NamedTuple):
    """Something that happened to a payment or, of a time to come, will."""

    name: str
    at: datetime
    after: str  # how long after the payment was created


@dataclass(frozen=True)
class ShownPayment:
    """A payment's row, and what templates ask of it."""

    row: Row

    @cached_property
    def record(self) -> Any:
        return record(self.row)

    @property
    def href(self) -> str:
        return change_href(self.record.id)

    @property
    def created_at(self) -> datetime:
        return moment(self.record.created_at)

    def events(self) -> Iterator[Event]:
        """Yield what a payment's times tell, in order."""
        record = self.record
        times = [("Created", record.created_at), ("Paid", record.paid_at)]
        times.append(("Expired" if record.status == "expired" else "Expires", record.expires_at))
        found = sorted((moment(time), name) for name, time in times if time)
        for at, name in found:
            yield Event(name, at, duration(at - self.created_at))

    @property
    def metadata(self) -> list[tuple[str, str]]:
        return texts(self.record.metadata)

    @property
    def details(self) -> list[tuple[str, str]]:
        """Return what is known by the method, each under a name for people: `cardNumber` is a Card number."""
        return [(in_words(name), value) for name, value in texts(self.record.details or b"{}")]


def change_href(payment_id: str) -> str:
    return reverse("admin:payments_payment_change", args=[admin_quoted(payment_id)])


def moment(time: str) -> datetime:
    return datetime.fromisoformat(time).replace(tzinfo=UTC)


def duration(time: timedelta) -> str:
    """Return a time in its two largest units: `3 h 5 min`; nothing for none, or less."""
    seconds = max(0, round(time.total_seconds()))
    parts = []
    for unit, size in UNITS:
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])


def texts(document: bytes) -> list[tuple[str, str]]:
    """Return a JSON object's members as texts; what is none is shown as JSON."""
    members: list[tuple[str, Any]] = json.loads(bytes(document)).items()
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) for name, value in members
    ]


def in_words(name: str) -> str:
    """Return the name of a JSON member as people write it: `cardHolder` as `Card holder`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).capitalize()
