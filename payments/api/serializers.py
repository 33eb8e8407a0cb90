"""A row as a record. No queries."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import UNSET, Raw, UnsetType
from rest_framework.serializers import BaseSerializer

from payments.hal import HAL, HTML, Link
from payments.links import BASES_MAX, Addresses, admin_quoted
from payments.record import Money, RecordLinks, WrittenRecord, encode
from payments.rows import Row


class PaymentSerializer(BaseSerializer[Any]):
    """The record as the API gives it, links included; `context` holds the view. Its instances are rows."""

    def to_representation(self, instance: Row) -> Any:
        return record(instance, links=writer(self.context["view"].addresses).links(instance[0]))

    @classmethod
    def many_init(cls, *rows: Sequence[Row], **options: Any) -> Any:
        """Return what writes a page; without one, DRF's own, for whoever describes it."""
        return PaymentListSerializer(*rows, **options) if rows else super().many_init(**options)


class PaymentListSerializer:
    """What `PaymentSerializer(rows, many=True)` makes, without a serializer's machinery: a page has no use for it."""

    def __init__(self, rows: Sequence[Row], *, context: Mapping[str, Any]) -> None:
        self.rows = rows
        self.writer = writer(context["view"].addresses)

    @property
    def data(self) -> list[Any]:
        links = self.writer.links
        return [record(row, links=links(row[0])) for row in self.rows]


class RecordLinksWriter:
    """Writes the links of record after record, which differ in the id alone."""

    PLACE = "\0"  # of the id: no address holds it, and JSON writes it in one way

    def __init__(self, addresses: Addresses) -> None:
        links = RecordLinks(
            itself=Link(href=addresses.payment(self.PLACE), type=HAL),
            dashboard=Link(href=addresses.dashboard(self.PLACE), type=HTML),
            documentation=Link(href=addresses.documentation, type=HTML),
        )
        self.before, self.between, self.after = encode(links).decode().split(encode(self.PLACE).decode()[1:-1])

    def links(self, payment_id: str) -> Raw:
        return Raw(f"{self.before}{payment_id}{self.between}{admin_quoted(payment_id)}{self.after}")


writer = lru_cache(BASES_MAX)(RecordLinksWriter)


def record(row: Row, *, links: Raw | UnsetType = UNSET) -> Any:
    """Return a payment in the form of the contract (section 2): what has no value is left out."""
    (
        payment_id,
        mode,
        amount,
        amount_currency,
        amount_net,
        amount_net_currency,
        amount_remaining,
        amount_remaining_currency,
        description,
        method,
        redirect_url,
        webhook_url,
        status,
        organization_id,
        sequence_type,
        metadata,
        details,
        created_at,
        expires_at,
        paid_at,
        customer_id,
        _,
    ) = row
    return WrittenRecord(
        payment_id,
        "payment",
        mode,
        Money(amount, amount_currency),
        UNSET if amount_net is None else Money(amount_net, amount_net_currency),
        UNSET if amount_remaining is None else Money(amount_remaining, amount_remaining_currency),
        description,
        method or UNSET,
        redirect_url or UNSET,
        webhook_url or UNSET,
        status,
        organization_id,
        sequence_type,
        Raw(metadata),
        UNSET if details is None else Raw(details),
        created_at,
        expires_at or UNSET,
        paid_at or UNSET,
        customer_id or UNSET,
        links,
    )
