"""A row as a record. No queries."""

from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from moneyed import Money as StoredMoney
from msgspec import UNSET, Raw, UnsetType
from rest_framework.serializers import BaseSerializer

from payments.addresses import Addresses
from payments.hal import HAL, HTML, Link
from payments.models import Payment
from payments.records import Money, Record, RecordLinks

Stored = TypeVar("Stored")
Shown = TypeVar("Shown")


class PaymentSerializer(BaseSerializer[Payment]):
    """The record as the API gives it, links included; `context` holds the request."""

    def to_representation(self, instance: Payment) -> Record:
        return record(instance, links=links(instance.id, addresses=self.addresses))

    @cached_property
    def addresses(self) -> Addresses:
        return Addresses.of(self.context["request"])


def record(payment: Payment, *, links: RecordLinks | UnsetType = UNSET) -> Record:
    """Return `payment` in the form of the contract (section 2): what has no value is left out."""
    return Record(
        id=payment.id,
        mode=payment.mode,
        amount=money(payment.amount),
        amount_net=optional(payment.amount_net, money),
        amount_remaining=optional(payment.amount_remaining, money),
        description=payment.description,
        method=payment.method or UNSET,
        redirect_url=payment.redirect_url or UNSET,
        webhook_url=payment.webhook_url or UNSET,
        status=payment.status,
        organization_id=str(payment.organization_id),
        sequence_type=payment.sequence_type,
        metadata=Raw(payment.metadata),
        details=optional(payment.details, Raw),
        created_at=time(payment.created_at),
        expires_at=optional(payment.expires_at, time),
        paid_at=optional(payment.paid_at, time),
        customer_id=payment.customer_id or UNSET,
        links=links,
    )


def links(payment_id: str, *, addresses: Addresses) -> RecordLinks:
    return RecordLinks(
        itself=Link(href=addresses.payment(payment_id), type=HAL),
        dashboard=Link(href=addresses.dashboard(payment_id), type=HTML),
        documentation=Link(href=addresses.documentation, type=HTML),
    )


def optional(value: Stored | None, shown: Callable[[Stored], Shown]) -> Shown | UnsetType:
    return UNSET if value is None else shown(value)


def money(stored: StoredMoney) -> Money:
    return Money(value=f"{stored.amount:.2f}", currency=stored.currency.code)


def time(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
