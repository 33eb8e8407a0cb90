"""A record as the columns of its row."""

from collections.abc import Iterable

from msgspec import UNSET, Struct

from payments.record import Record, encode
from payments.totals import PlacedDay


class StoredRow(Struct, frozen=True, gc=False):
    """A payment's columns, as texts that both databases read; amounts too, so that they stay exact."""

    id: str
    mode: str
    amount: str
    amount_currency: str
    amount_net: str | None
    amount_net_currency: str | None
    amount_remaining: str | None
    amount_remaining_currency: str | None
    description: str
    method: str
    redirect_url: str
    webhook_url: str
    status: str
    organization_id: int
    sequence_type: str
    metadata: str
    details: str | None
    created_at: str
    expires_at: str | None
    paid_at: str | None
    customer_id: str


COLUMNS = StoredRow.__struct_fields__


def row(record: Record) -> StoredRow:
    net, remaining = record.amount_net, record.amount_remaining
    return StoredRow(
        record.id,
        record.mode,
        record.amount.value,
        record.amount.currency,
        None if net is UNSET else net.value,
        None if net is UNSET else net.currency,
        None if remaining is UNSET else remaining.value,
        None if remaining is UNSET else remaining.currency,
        record.description,
        "" if record.method is UNSET else record.method,
        "" if record.redirect_url is UNSET else record.redirect_url,
        "" if record.webhook_url is UNSET else record.webhook_url,
        record.status,
        int(record.organization_id),
        record.sequence_type,
        encode(record.metadata).decode(),
        None if record.details is UNSET else bytes(record.details).decode(),
        stored_time(record.created_at),
        None if record.expires_at is UNSET else stored_time(record.expires_at),
        None if record.paid_at is UNSET else stored_time(record.paid_at),
        "" if record.customer_id is UNSET else record.customer_id,
    )


def days(rows: Iterable[StoredRow]) -> set[PlacedDay]:
    """Return the days of which payments are."""
    return {(row.organization_id, row.mode, row.created_at[:10]) for row in rows}


def stored_time(time: str) -> str:
    """Return a time, which is in UTC, as Django makes it a text."""
    return f"{time[:10]} {time[11:19]}" if time.endswith(".000") else f"{time[:10]} {time[11:]}000"
