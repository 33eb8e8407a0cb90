"""Serializes payments as records with links. It runs no queries."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from msgspec import Raw
from rest_framework.serializers import BaseSerializer

from payments.hal import HAL, HTML, Link
from payments.links import CACHED_MAX, Links, admin_quoted
from payments.models import Payment
from payments.record import Record, RecordLinks, encode
from payments.rows import Row, build_record, values_of


class PaymentSerializer(BaseSerializer[Any]):
    """The record of a payment, which is an instance of the model or a row of a compiled statement.

    `context["request"]` determines the links.
    """

    @classmethod
    def many_init(cls, *args: Any, **kwargs: Any) -> "PageSerializer":
        return PageSerializer(*args, **kwargs)

    def to_representation(self, instance: Payment | Row) -> Record:
        [record] = build_records([instance], links=Links.of(self.context["request"]))
        return record


class PageSerializer(BaseSerializer[Any]):
    """The records of a page. DRF's `ListSerializer` costs more than the records."""

    @property
    def data(self) -> list[Record]:
        return build_records(self.instance or (), links=Links.of(self.context["request"]))


def build_records(payments: Iterable[Payment | Row], *, links: Links) -> list[Record]:
    """Return the records of payments. The links of each differ only in its ID."""
    before, between, after = link_template(links)
    return [
        build_record(
            payment if isinstance(payment, Row) else values_of(payment),
            Raw(f"{before}{payment.id}{between}{admin_quoted(payment.id)}{after}"),  # no call for each payment
        )
        for payment in payments
    ]


MARK = "\0"  # stands for an ID: no URL contains this character, and JSON has one form for it


@lru_cache(CACHED_MAX)
def link_template(links: Links) -> list[str]:
    """Return the three parts of the JSON of a record's links, which have the payment's ID between them."""
    record_links = RecordLinks(
        itself=Link(href=links.payment(MARK), type=HAL),
        dashboard=Link(href=links.dashboard(MARK), type=HTML),
        documentation=Link(href=links.section("payment-record"), type=HTML),
    )
    return encode(record_links).decode().split(encode(MARK).decode()[1:-1])
