"""Rows into the table: a new payment is inserted, a changed one updated, none leaves its organization and mode."""

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import TypeAlias

from django.db import IntegrityError, connection, transaction
from msgspec.structs import astuple

from payments.ingest.columns import COLUMNS, StoredRow
from payments.ingest.validation import InvalidRecord
from payments.models import Payment
from payments.record import encode

TABLE = Payment._meta.db_table  # noqa: SLF001  Django's documented name for a model's options
INCOMING = "incoming_payments"

# What tells whose payment it is and where it stands in the list: an import never changes these.
MISPLACED = (
    ("organization_id", InvalidRecord("organizationId", "this payment belongs to another organization")),
    ("mode", InvalidRecord("mode", "this payment exists in the other mode")),
    (
        "created_at",
        InvalidRecord("createdAt", "must not change: this payment was created at another time"),
    ),
)
PLACE = tuple(column for column, _ in MISPLACED)
CHANGEABLE = tuple(column for column in COLUMNS if column not in {"id", *PLACE})

# The columns by which the database tells payments apart: their ids or, where they are distributed by organization, the
# ids within each (docs/citus.md).
Key: TypeAlias = tuple[str, ...]
ID: Key = ("id",)

# How two rows are compared, of which either may hold NULL.
DIFFERS = {"postgresql": "IS DISTINCT FROM", "sqlite": "IS NOT"}


def prepare() -> Key:
    """Make a table in which rows wait, this connection's own, and return by what the database tells payments apart."""
    with connection.cursor() as cursor:
        key = tuple(connection.introspection.get_primary_key_columns(cursor, TABLE) or ID)
        if key != ID:
            # An import ends with a change of organizations, before which Citus must not have written side by side.
            cursor.execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'")
        if connection.vendor == "postgresql":
            # A later schema may have columns that this code knows nothing of: those have a default.
            like = f"(LIKE {TABLE} INCLUDING DEFAULTS)"
            cursor.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {INCOMING} {like} ON COMMIT DROP")
            # Otherwise every row is remembered until the transaction ends, to be checked then.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        else:
            cursor.execute(
                f"CREATE TEMPORARY TABLE IF NOT EXISTS {INCOMING} AS SELECT {listed(COLUMNS)} FROM {TABLE} LIMIT 0"
            )
    return key


def write(rows: Sequence[StoredRow], *, key: Key) -> int:
    """Insert or update a payment for each row, no two of one payment, and return how many that changed.

    They come in the order of their ids, so that of two imports whose batches meet neither waits for the other in
    turn. A payment that is stored but belongs to somebody else, or was created at another time, is left as it is:
    `misplaced` tells which.
    """
    in_order = sorted(rows, key=attrgetter("id"))
    # Where payments are distributed, whether they are new is left to their shards.
    is_added = key == ID and are_new(in_order) and added(in_order)
    return len(rows) if is_added else merged(in_order, key=key)


def are_new(rows: Sequence[StoredRow]) -> bool:
    """Tell whether none of the payments is stored."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # As one text: of a list psycopg looks through every item for what must be quoted.
            cursor.execute(
                f"SELECT EXISTS (SELECT FROM {TABLE} WHERE id = ANY (string_to_array(%s, ',')))",
                [",".join(row.id for row in rows)],
            )
        else:
            cursor.execute(
                f"SELECT EXISTS (SELECT 1 FROM {TABLE} WHERE id IN (SELECT value FROM json_each(%s)))",
                [encode([row.id for row in rows]).decode()],
            )
        return not cursor.fetchone()[0]


def added(rows: Sequence[StoredRow]) -> bool:
    """Insert rows, or none of them where somebody else has inserted one in the meantime."""
    try:
        with transaction.atomic():
            insert(TABLE, rows)
    except IntegrityError:
        return False
    return True


def insert(table: str, rows: Sequence[StoredRow]) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with connection.wrap_database_errors, cursor.copy(f"COPY {table} ({listed(COLUMNS)}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(astuple(row))
        else:
            places = ", ".join(["%s"] * len(COLUMNS))
            cursor.executemany(
                f"INSERT INTO {table} ({listed(COLUMNS)}) VALUES ({places})", [astuple(row) for row in rows]
            )


def stage(rows: Sequence[StoredRow]) -> None:
    """Let rows wait in place of those before."""
    with connection.cursor() as cursor:
        # What PostgreSQL deletes would be read over and over until it is cleared away.
        cursor.execute(f"TRUNCATE {INCOMING}" if connection.vendor == "postgresql" else f"DELETE FROM {INCOMING}")
    insert(INCOMING, rows)


def merged(rows: Sequence[StoredRow], *, key: Key) -> int:
    """Insert or update a payment for each row, and return how many that changed."""
    stage(rows)
    changes = ", ".join(f"{column} = excluded.{column}" for column in CHANGEABLE)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {TABLE} AS stored ({listed(COLUMNS)}) "
            f"SELECT {listed(COLUMNS)} FROM {INCOMING} WHERE TRUE ORDER BY id "
            f"ON CONFLICT ({listed(key)}) DO UPDATE SET {changes} "
            f"WHERE ({listed(PLACE, 'stored')}) = ({listed(PLACE, 'excluded')}) "
            f"AND ({listed(CHANGEABLE, 'stored')}) {DIFFERS[connection.vendor]} ({listed(CHANGEABLE, 'excluded')})"
        )
        changed: int = cursor.rowcount
    return changed


def misplaced(organization_ids: Collection[int], *, key: Key) -> dict[str, InvalidRecord]:
    """Return what is wrong with each waiting row that `write` leaves out, by its id: it is stored elsewhere.

    `organization_ids` are those of the rows.
    """
    cases = " ".join(
        f"WHEN stored.{column} <> {INCOMING}.{column} THEN {index}" for index, (column, _) in enumerate(MISPLACED)
    )
    fault = f"CASE {cases} END"
    if key == ID:
        # For each row the payment is looked up by its id, however many there are: a join might read all of them.
        fault = f"(SELECT {fault} FROM {TABLE} AS stored WHERE stored.id = {INCOMING}.id)"
        found = INCOMING
    else:
        # Citus sends the rows to the shards of these organizations, and looks nothing up from here one by one.
        pairs = " AND ".join(f"stored.{column} = {INCOMING}.{column}" for column in key)
        organizations = ", ".join(map(str, organization_ids))
        found = f"{INCOMING} JOIN {TABLE} AS stored ON {pairs} AND stored.organization_id IN ({organizations})"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {INCOMING}.id, {fault} FROM {found} WHERE {fault} IS NOT NULL")
        return {payment_id: MISPLACED[index][1] for payment_id, index in cursor.fetchall()}


def listed(columns: Sequence[str], table: str | None = None) -> str:
    return ", ".join(f"{table}.{column}" if table else column for column in columns)
