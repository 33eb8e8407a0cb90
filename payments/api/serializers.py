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
        self.record_links = link_template(links)

    def to_representation(self, instance: Row) -> Record:
        return build_record(instance, self.record_links.fill(instance[ID]))


def serialize_page(rows: Sequence[Row], *, links: Links) -> list[Record]:
    """Return the records of a page."""
    fill = link_template(links).fill
    return [build_record(row, fill(row[ID])) for row in rows]


class LinkTemplate:
    """The JSON of a record's links, which differ only in the payment's ID."""

    MARK = "\0"  # stands for the ID: no URL contains this character, and JSON has one form for it

    def __init__(self, links: Links) -> None:
        record_links = RecordLinks(
            itself=Link(href=links.payment(self.MARK), type=HAL),
            dashboard=Link(href=links.dashboard(self.MARK), type=HTML),
            documentation=Link(href=links.documentation, type=HTML),
        )
        self.before, self.between, self.after = encode(record_links).decode().split(encode(self.MARK).decode()[1:-1])

    def fill(self, payment_id: str) -> Raw:
        return Raw(f"{self.before}{payment_id}{self.between}{admin_quoted(payment_id)}{self.after}")


link_template = lru_cache(CACHED_MAX)(LinkTemplate)
