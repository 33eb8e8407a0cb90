"""Serializes payments as records with links. It runs no queries."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import UNSET
from msgspec.json import decode
from rest_framework.serializers import BaseSerializer

from payments.api.links import CACHED_MAX, Links
from payments.hal import HAL, HTML, Link
from payments.models import Payment
from payments.record import Record, RecordLinks, encode
from payments.rows import RowValues, build_linked_records, values_of


class PaymentSerializer(BaseSerializer[Any]):
    """The record of a payment: plain data for an instance of the model, a `Record` for a row of a compiled statement.

    The links depend on `context["request"]`.
    """

    @classmethod
    def many_init(cls, *args: Any, **kwargs: Any) -> Any:
        """Return the serializer of a page; DRF's for a subclass or for other arguments."""
        if cls is PaymentSerializer and len(args) == 1 and kwargs.keys() == {"context"}:
            return PageSerializer(*args, **kwargs)
        return super().many_init(*args, **kwargs)

    def to_representation(self, instance: Payment | RowValues) -> Any:
        [record] = PageSerializer([instance], context=self.context).data
        return record


class PageSerializer:
    """The records of a page. 56 µs for 20: DRF's `ListSerializer` calls the serializer for each."""

    def __init__(self, instance: Iterable[Payment | RowValues], *, context: Mapping[str, Any]) -> None:
        self.instance = list(instance)
        self.context = context

    @property
    def data(self) -> list[Any]:
        links = links_of_context(self.context)
        instances: list[Any] = self.instance  # all of one type
        if not instances or isinstance(instances[0], tuple):
            return build_records(instances, links=links)
        records = build_records([values_of(payment) for payment in instances], links=links)
        plain: list[Any] = decode(encode(records))  # so that any renderer accepts them
        return plain


def links_of_context(context: Mapping[str, Any]) -> Links:
    """Return the links of a serializer's context. The views of this API have looked them up.

    :raises LookupError: the context has no request
    """
    links = getattr(context.get("view"), "links", None)
    if links is None and context.get("request") is None:
        raise LookupError('A record has links: PaymentSerializer needs context={"request": request}.')
    return links or Links.of(context["request"])


def build_records(rows: Sequence[RowValues], *, links: Links) -> list[Record]:
    parts = link_template(links)
    return build_linked_records[len(parts)](rows, parts)


MARK = "\0"  # stands for an ID: no URL contains this character, and JSON has one form for it


@lru_cache(CACHED_MAX)
def link_template(links: Links) -> list[str]:
    """Return the parts of the JSON of a record's links, which have the payment's ID between them."""
    dashboard = links.dashboard(MARK)
    record_links = RecordLinks(
        itself=Link(href=links.payment(MARK), type=HAL),
        dashboard=UNSET if dashboard is None else Link(href=dashboard, type=HTML),
        documentation=Link(href=links.section("payment-record"), type=HTML),
    )
    return encode(record_links).decode().split(encode(MARK).decode()[1:-1])
