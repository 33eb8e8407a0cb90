"""The payments that the table grows by: pure, and the same for the same count."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec
from msgspec import Raw

from benchmarks import dataset
from payments.models import SequenceType
from payments.record import Record, encode

UNTIL = dataset.UNTIL
SPAN = timedelta(days=730)
SMALL_ORGANIZATIONS = 1000


def records(count: int, *, until: datetime = UNTIL, span: timedelta = SPAN, first_order: int = 1) -> Iterator[Record]:
    """Yield payments of two years, nine in ten of one organization, the others of a thousand.

    Each order has a number of its own, which a year of the demo's shops would run out of.
    """
    for order, record in enumerate(dataset.records(count, until=until, span=span), first_order):
        is_large = record.organization_id == str(dataset.LARGE.id)
        is_order = record.sequence_type == SequenceType.ONEOFF
        yield msgspec.structs.replace(
            record,
            organization_id=record.organization_id if is_large else str(dataset.SMALL.id + order % SMALL_ORGANIZATIONS),
            description=f"Order {order}" if is_order else record.description,
            metadata=Raw(encode({"order": str(order)})) if is_order else record.metadata,
        )
