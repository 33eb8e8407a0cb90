"""The payments of the growth benchmarks. The same count gives the same payments."""

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
    """Yield payments of two years. Nine of ten belong to one organization, the others to a thousand.

    Order numbers are unique, unlike those of demo payments.
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
