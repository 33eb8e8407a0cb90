"""Records into rows: a new payment is inserted, a changed one updated, and none leaves its organization and mode."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec
from django.db import connection
from msgspec import UNSET, Raw, UnsetType

from payments.ingest.checking import InvalidRecord
from payments.models import Payment
from payments.records import Money, Record, encode

TABLE = Payment._meta.db_table  # noqa: SLF001  Django's documented name for a model's options
INCOMING = "incoming_payments"

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

# How two rows are compared, of which either may hold NULL.
DIFFERS = {"postgresql": "IS DISTINCT FROM", "sqlite": "IS NOT"}

StoredRow: TypeAlias = tuple[str | int | None, ...]


def write(records: Sequence[Record]) -> int:
    """Insert or update a row for each of `records`, and return how many rows that changed.

    They go into a table of their own first, all at once, and from there where they belong: in the order of their ids,
    so that of two imports that meet neither waits for the other in turn. Of two records of one id the later holds. A
    row of the same id that belongs to somebody else, or was created at another time, is left as it is: `misplaced`
    names its record.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {INCOMING} AS SELECT {listed(COLUMNS)} FROM {TABLE} LIMIT 0"
        )
        cursor.execute(f"DELETE FROM {INCOMING}")
        fill(cursor, [row(record) for record in one_for_each_id(records)])
        cursor.execute(upsert())
        changed: int = cursor.rowcount
    return changed


def one_for_each_id(records: Sequence[Record]) -> Iterable[Record]:
    """Return the last record of each payment; one that would put the payment elsewhere does not count."""
    found: dict[str, Record] = {}
    for record in records:
        first = found.setdefault(record.id, record)
        if first is not record and place(first) == place(record):
            found[record.id] = record
    return found.values()


def place(record: Record) -> tuple[str, str, str]:
    return record.organization_id, record.mode, record.created_at


def fill(cursor: Any, rows: Iterable[StoredRow]) -> None:
    if connection.vendor == "postgresql":
        with cursor.copy(f"COPY {INCOMING} ({listed(COLUMNS)}) FROM STDIN") as copy:
            for values in rows:
                copy.write_row(values)
    else:
        cursor.executemany(f"INSERT INTO {INCOMING} VALUES ({', '.join(['%s'] * len(COLUMNS))})", rows)


def upsert() -> str:
    """Return the statement that moves the incoming rows where they belong. An unchanged row is not touched."""
    changes = ", ".join(f"{column} = excluded.{column}" for column in CHANGEABLE)
    return (
        f"INSERT INTO {TABLE} AS stored ({listed(COLUMNS)}) "
        f"SELECT {listed(COLUMNS)} FROM {INCOMING} WHERE TRUE ORDER BY id "
        f"ON CONFLICT (id) DO UPDATE SET {changes} "
        f"WHERE ({listed(FIXED, 'stored')}) = ({listed(FIXED, 'excluded')}) "
        f"AND ({listed(CHANGEABLE, 'stored')}) {DIFFERS[connection.vendor]} ({listed(CHANGEABLE, 'excluded')})"
    )


def listed(columns: Sequence[str], table: str | None = None) -> str:
    return ", ".join(f"{table}.{column}" if table else column for column in columns)


def row(record: Record) -> StoredRow:
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
    """Return a time as both databases read it: as the text that Django makes of a moment, all in UTC."""
    if time is UNSET:
        return None
    date, clock = time[:10], time[11:]
    return f"{date} {clock[:8]}" if clock.endswith(".000") else f"{date} {clock}000"


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
