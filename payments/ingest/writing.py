"""Records into rows: a new payment is inserted, a changed one updated, and none leaves its organization and mode."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec
from django.db import connection
from msgspec import UNSET, Raw, UnsetType

from payments.ingest.checking import InvalidRecord
from payments.models import Payment
from payments.records import Money, Record, encode

TABLE = Payment._meta.db_table  # noqa: SLF001  Django's documented name for a model's options

# What tells whose payment it is and where it stands in the list: an import never changes these.
FIXED = ("id", "organization_id", "mode", "created_at")
CHANGEABLE = (
    "amount",
    "amount_currency",
    "amount_net",
    "amount_net_currency",
    "amount_remaining",
    "amount_remaining_currency",
    "description",
    "method",
    "redirect_url",
    "webhook_url",
    "status",
    "sequence_type",
    "metadata",
    "details",
    "expires_at",
    "paid_at",
    "customer_id",
)
COLUMNS = FIXED + CHANGEABLE


def write(records: Sequence[Record]) -> int:
    """Insert or update a row for each of `records`, in the order of their ids, and return how many rows that changed.

    A row of the same id that belongs to somebody else, or was created at another time, is left as it is: `misplaced`
    names its record. In the order of their ids, two batches that meet do not each wait for the other.
    """
    with connection.cursor() as cursor:
        cursor.executemany(upsert(), [row(record) for record in sorted(records, key=lambda record: record.id)])
        changed: int = cursor.rowcount
    return changed


def upsert() -> str:
    """Return the statement that writes one row. An unchanged row is not touched."""
    differs = {"postgresql": "IS DISTINCT FROM", "sqlite": "IS NOT"}[connection.vendor]
    changes = ", ".join(f"{column} = excluded.{column}" for column in CHANGEABLE)
    return (
        f"INSERT INTO {TABLE} AS stored ({listed(COLUMNS)}) VALUES ({', '.join(['%s'] * len(COLUMNS))}) "
        f"ON CONFLICT (id) DO UPDATE SET {changes} "
        f"WHERE ({listed(FIXED, 'stored')}) = ({listed(FIXED, 'excluded')}) "
        f"AND ({listed(CHANGEABLE, 'stored')}) {differs} ({listed(CHANGEABLE, 'excluded')})"
    )


def listed(columns: Sequence[str], table: str | None = None) -> str:
    return ", ".join(f"{table}.{column}" if table else column for column in columns)


def row(record: Record) -> tuple[str | int | None, ...]:
    """Return the values of COLUMNS. Amounts stay text: the database reads them as decimals, exactly."""
    return (
        record.id,
        int(record.organization_id),
        record.mode,
        stored_time(record.created_at),
        *stored_money(record.amount),
        *stored_money(record.amount_net),
        *stored_money(record.amount_remaining),
        record.description,
        stored_text(record.method),
        stored_text(record.redirect_url),
        stored_text(record.webhook_url),
        record.status,
        record.sequence_type,
        encode(record.metadata).decode(),
        stored_document(record.details),
        stored_time(record.expires_at),
        stored_time(record.paid_at),
        stored_text(record.customer_id),
    )


def stored_money(money: Money | UnsetType) -> tuple[str, str] | tuple[None, None]:
    return (None, None) if money is UNSET else (money.value, money.currency)


def stored_text(text: str | UnsetType) -> str:
    return "" if text is UNSET else text


def stored_document(document: Raw | UnsetType) -> str | None:
    """Return a JSON document without the spaces between its parts, and otherwise as it was written."""
    return None if document is UNSET else msgspec.json.format(bytes(document), indent=-1).decode()


def stored_time(time: str | UnsetType) -> str | None:
    return None if time is UNSET else connection.ops.adapt_datetimefield_value(moment(time))


def moment(time: str) -> datetime:
    return datetime.fromisoformat(time).replace(tzinfo=UTC)


def misplaced(records: Sequence[Record]) -> Iterator[tuple[int, InvalidRecord]]:
    """Yield the index of each record that `write` leaves out, and why: its payment is stored, but elsewhere."""
    stored = {
        payment_id: place
        for payment_id, *place in Payment.objects.filter(id__in=[record.id for record in records]).values_list(*FIXED)
    }
    for index, record in enumerate(records):
        if record.id not in stored:
            continue
        organization_id, mode, created_at = stored[record.id]
        if organization_id != int(record.organization_id):
            yield index, InvalidRecord("organizationId", "this payment belongs to another organization")
        elif mode != record.mode:
            yield index, InvalidRecord("mode", "this payment is of the other mode")
        elif created_at != moment(record.created_at):
            yield (
                index,
                InvalidRecord("createdAt", "this payment was created at another time, which never changes"),
            )
