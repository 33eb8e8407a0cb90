"""Records into rows: a new payment is inserted, a changed one updated, and none leaves its organization and mode."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection
from msgspec import UNSET

from payments.ingest.checking import InvalidRecord
from payments.models import Payment
from payments.records import Record, encode

TABLE = Payment._meta.db_table  # noqa: SLF001  Django's documented name for a model's options
INCOMING = "incoming_payments"

# What tells whose payment it is and where it stands in the list: an import never changes these.
MISPLACED = (
    ("organization_id", InvalidRecord("organizationId", "this payment belongs to another organization")),
    ("mode", InvalidRecord("mode", "this payment is of the other mode")),
    (
        "created_at",
        InvalidRecord("createdAt", "this payment was created at another time, which never changes"),
    ),
)
PLACE = tuple(column for column, _ in MISPLACED)


class StoredRow(NamedTuple):
    """A payment's columns, as texts that both databases read; amounts too, so that they stay exact."""

    id: str
    organization_id: int
    mode: str
    created_at: str
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
    sequence_type: str
    metadata: str
    details: str | None
    expires_at: str | None
    paid_at: str | None
    customer_id: str


COLUMNS = StoredRow._fields
CHANGEABLE = COLUMNS[COLUMNS.index("amount") :]

# How two rows are compared, of which either may hold NULL.
DIFFERS = {"postgresql": "IS DISTINCT FROM", "sqlite": "IS NOT"}


def prepare() -> None:
    """Make the table in which rows wait, for this transaction's use."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {INCOMING} AS SELECT {listed(COLUMNS)} FROM {TABLE} LIMIT 0"
        )
        if connection.vendor == "postgresql":
            # Otherwise every row is remembered until the end, to be checked then.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def stage(rows: Sequence[StoredRow]) -> None:
    """Let rows, no two of one payment, wait in place of those before: there they come all at once, in nobody's way."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {INCOMING}")  # what is deleted would be read over until it is cleared away
            with cursor.copy(f"COPY {INCOMING} ({listed(COLUMNS)}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            cursor.execute(f"DELETE FROM {INCOMING}")
            cursor.executemany(f"INSERT INTO {INCOMING} VALUES ({', '.join(['%s'] * len(COLUMNS))})", rows)


def merge() -> int:
    """Insert or update a payment for each staged row, and return how many that changed.

    They come in the order of their ids, so that of two imports that meet neither waits for the other in turn. A
    payment that is stored but belongs to somebody else, or was created at another time, is left as it is.
    """
    changes = ", ".join(f"{column} = excluded.{column}" for column in CHANGEABLE)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {TABLE} AS stored ({listed(COLUMNS)}) "
            f"SELECT {listed(COLUMNS)} FROM {INCOMING} WHERE TRUE ORDER BY id "
            f"ON CONFLICT (id) DO UPDATE SET {changes} "
            f"WHERE ({listed(PLACE, 'stored')}) = ({listed(PLACE, 'excluded')}) "
            f"AND ({listed(CHANGEABLE, 'stored')}) {DIFFERS[connection.vendor]} ({listed(CHANGEABLE, 'excluded')})"
        )
        changed: int = cursor.rowcount
    return changed


def misplaced() -> dict[str, InvalidRecord]:
    """Return what is wrong with each staged row that `merge` leaves out, by its id: the payment is stored elsewhere."""
    cases = " ".join(
        f"WHEN stored.{column} <> {INCOMING}.{column} THEN {index}" for index, (column, _) in enumerate(MISPLACED)
    )
    # For each row the payment is looked up by its id, however many there are: a join might read all of them.
    fault = f"(SELECT CASE {cases} END FROM {TABLE} AS stored WHERE stored.id = {INCOMING}.id)"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id, {fault} FROM {INCOMING} WHERE {fault} IS NOT NULL")
        return {payment_id: MISPLACED[index][1] for payment_id, index in cursor.fetchall()}


def listed(columns: Sequence[str], table: str | None = None) -> str:
    return ", ".join(f"{table}.{column}" if table else column for column in columns)


def row(record: Record) -> StoredRow:
    net, remaining = record.amount_net, record.amount_remaining
    return StoredRow(
        record.id,
        int(record.organization_id),
        record.mode,
        stored_time(record.created_at),
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
        record.sequence_type,
        encode(record.metadata).decode(),
        None if record.details is UNSET else bytes(record.details).decode(),
        None if record.expires_at is UNSET else stored_time(record.expires_at),
        None if record.paid_at is UNSET else stored_time(record.paid_at),
        "" if record.customer_id is UNSET else record.customer_id,
    )


def stored_time(time: str) -> str:
    """Return a time, which is in UTC, as Django makes it a text."""
    return f"{time[:10]} {time[11:19]}" if time.endswith(".000") else f"{time[:10]} {time[11:]}000"
