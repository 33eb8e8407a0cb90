"""Serializes rows of the database as records with links. It runs no queries."""

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Raw
from rest_framework.serializers import BaseSerializer

from payments.hal import HAL, HTML, Link
from payments.links import CACHED_MAX, Links, admin_quoted
from payments.record import Record, RecordLinks, encode
from payments.rows import ID, Row, build_record


class PaymentSerializer(BaseSerializer[Row]):
    """A payment's record, as the API returns it. The instance is a row of the database, not a model.

    A page is serialized by `serialize_page`: the `ListSerializer` that DRF makes for `many=True` costs more than the
    records.
    """

    def __init__(self, instance: Row | None = None, *, links: Links) -> None:
        super().__init__(instance)
        self.links = links

    def to_representation(self, instance: Row) -> Record:
        [record] = serialize_page([instance], links=self.links)
        return record


def serialize_page(rows: Sequence[Row], *, links: Links) -> list[Record]:
    before, between, after = link_template(links)
    return [
        build_record(row, Raw(f"{before}{row[ID]}{between}{admin_quoted(row[ID])}{after}"))  # no call for each row
        for row in rows
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
