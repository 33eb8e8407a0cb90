"""Serializes payments as records with links. It runs no queries."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from rest_framework.serializers import BaseSerializer

from payments.hal import HAL, HTML, Link
from payments.links import CACHED_MAX, Links
from payments.models import Payment
from payments.record import Record, RecordLinks, encode
from payments.rows import RowValues, build_linked_records, values_of


class PaymentSerializer(BaseSerializer[Any]):
    """The record of a payment, which is an instance of the model or a row of a compiled statement.

    The links depend on `context["request"]`.
    """

    @classmethod
    def many_init(cls, *args: Any, **kwargs: Any) -> "PageSerializer":  # type: ignore[override]  # only `data` is used
        return PageSerializer(*args, **kwargs)

    def to_representation(self, instance: Payment | RowValues) -> Record:
        [record] = build_records([instance], links=links_of(self.context))
        return record


class PageSerializer:
    """The records of a page. DRF's `ListSerializer` costs more than the records."""

    def __init__(self, instance: Sequence[Payment | RowValues], *, context: Mapping[str, Any]) -> None:
        self.instance = instance
        self.context = context

    @property
    def data(self) -> list[Record]:
        return build_records(self.instance, links=links_of(self.context))


def links_of(context: Mapping[str, Any]) -> Links:
    """Return the links for the request of a serializer's context. The views of this API have looked them up."""
    return context.get("links") or Links.of(context["request"])


def build_records(payments: Sequence[Payment | RowValues], *, links: Links) -> list[Record]:
    """Return the records of payments: all of them instances of the model, or all rows."""
    is_read: bool = not payments or isinstance(payments[0], tuple)
    rows: Any = payments if is_read else [values_of(cast("Payment", payment)) for payment in payments]
    return build_linked_records(rows, link_template(links))


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
