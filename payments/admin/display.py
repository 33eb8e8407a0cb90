"""A payment prepared for templates: parsed times, a timeline, readable names."""

import json
import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.urls import reverse

from payments.admin.timeline import Event, build_timeline, parse_time
from payments.identifiers import change_time
from payments.links import admin_quoted
from payments.rows import Row, build_record


@dataclass(frozen=True)
class PaymentDisplay:
    """A payment's row, with the values that templates need."""

    row: Row
    change_id: int | None = None  # of the last change; None if it is unknown

    @cached_property
    def record(self) -> Any:
        return build_record(self.row)

    @property
    def href(self) -> str:
        return payment_href(self.record.id)

    @property
    def created_at(self) -> datetime:
        return parse_time(self.record.created_at)

    @property
    def paid_at(self) -> datetime | None:
        return parse_time(self.record.paid_at) if self.record.paid_at else None

    @property
    def card_end(self) -> str:
        """Return the last four digits of the card, such as `•••• 4242`; an empty text without a card."""
        number = dict(text_members(self.record.details or b"{}")).get("cardNumber", "")
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
        return text_members(self.record.metadata)

    @property
    def details(self) -> list[tuple[str, str]]:
        """Return the details with readable names: `Card number` for `cardNumber`."""
        return [(readable_name(name), value) for name, value in text_members(self.record.details or b"{}")]


def payment_href(payment_id: str) -> str:
    return reverse("admin:payments_payment_change", args=[admin_quoted(payment_id)])


def text_members(document: bytes) -> list[tuple[str, str]]:
    """Return the members of a JSON object as texts. Values that are not texts stay in JSON."""
    members: list[tuple[str, Any]] = json.loads(bytes(document)).items()
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)) for name, value in members
    ]


def readable_name(name: str) -> str:
    """Return the name of a JSON member as words: `Card holder` for `cardHolder`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).capitalize()
