"""Rows as lines that an import takes back, byte for byte."""

from collections.abc import Iterator

from payments.api.serializers import record
from payments.models import PaymentQuerySet
from payments.ordering import NEWEST_FIRST
from payments.record import encode
from payments.rows import Row

CHUNK_ROWS = 2000


def export_payments(payments: PaymentQuerySet) -> Iterator[bytes]:
    """Yield a line for each payment: organization by organization, mode by mode, newest first. Memory stays flat."""
    ordered = payments.order_by("organization_id", "mode", *NEWEST_FIRST)
    for row in ordered.as_rows().iterator(chunk_size=CHUNK_ROWS):
        yield line(row)


def line(row: Row) -> bytes:
    return bytes(encode(record(row)) + b"\n")
