"""Writes rows to the payments table: inserts new payments, updates changed ones, and finds conflicts."""

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import TypeAlias

from django.db import IntegrityError, connection, transaction
from msgspec.structs import astuple

from payments.ingest.change_log import ChangeLog
from payments.ingest.errors import InvalidRecord
from payments.ingest.stored_rows import STORED_COLUMNS, StoredRow
from payments.models import Payment
from payments.record import encode

TABLE = Payment._meta.db_table  # noqa: SLF001  Django's documented name for a model's options
STAGING_TABLE = "staged_payments"

# The columns that an import never changes, with the error of a row in which they differ from the stored payment. They
# determine the payment's list and its position there.
FIXED_COLUMNS = {
    "organization_id": InvalidRecord.of("organizationId", "this payment belongs to another organization"),
    "mode": InvalidRecord.of("mode", "this payment exists in the other mode"),
    "created_at": InvalidRecord.of("createdAt", "must not change: this payment was created at another time"),
}
CHANGEABLE_COLUMNS = tuple(column for column in STORED_COLUMNS if column not in {"id", *FIXED_COLUMNS})

# The columns that an import writes.
WRITTEN_COLUMNS = (*STORED_COLUMNS, "change_id")

# The columns of the table's primary key: the ID or, in a table that is distributed by organization, the organization
# and the ID (docs/citus.md).
PrimaryKey: TypeAlias = tuple[str, ...]
ID_KEY: PrimaryKey = ("id",)

# Citus changes the shards of a server one after the other, through one connection. In a transaction that has changed
# shards in parallel, it refuses to write reference tables.
SEQUENTIAL = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"

# How to compare rows with NULL values.
DIFFERS_FROM = {"postgresql": "IS DISTINCT FROM", "sqlite": "IS NOT"}


def fetch_primary_key() -> PrimaryKey:
    with connection.cursor() as cursor:
        return tuple(connection.introspection.get_primary_key_columns(cursor, TABLE) or ID_KEY)


def prepare_transaction(*, key: PrimaryKey, waits_for_writers: bool = False) -> None:
    """Create the staging table for this transaction, and set what the writes of the transaction need.

    `waits_for_writers`: begin when other transactions that write payments have ended, and let later ones wait.
    """
    with connection.cursor() as cursor:
        if waits_for_writers and connection.vendor == "postgresql" and key == ID_KEY:
            cursor.execute(f"LOCK TABLE {TABLE} IN SHARE ROW EXCLUSIVE MODE")
        if key != ID_KEY:
            cursor.execute(SEQUENTIAL)  # so that the transaction can also create organizations
        if connection.vendor == "postgresql":
            # A newer schema may have more columns. They have defaults, which the staging table needs too.
            like = f"(LIKE {TABLE} INCLUDING DEFAULTS)"
            cursor.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {STAGING_TABLE} {like} ON COMMIT DROP")
            # PostgreSQL would otherwise remember every row until the commit, to check deferred constraints then.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        else:
            select = f"SELECT {column_list(WRITTEN_COLUMNS)} FROM {TABLE} LIMIT 0"
            cursor.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {STAGING_TABLE} AS {select}")


def write_rows(rows: Sequence[StoredRow], *, key: PrimaryKey, log: ChangeLog) -> int:
    """Insert or update the payment of each row, and return how many payments changed. Note the changes in the log.

    The rows have distinct IDs. They are written in the order of their IDs, so that concurrent imports of the same
    payments do not deadlock. `find_conflicts` returns the rows that were not written.
    """
    update_statistics(key)
    sorted_rows = sorted(rows, key=attrgetter("id"))
    change_ids = log.assign(sorted_rows)
    # New payments need no staging table. In a distributed table, the shards find out which payments are new.
    if not (key == ID_KEY and are_new(sorted_rows) and insert_all(sorted_rows, change_ids)):
        change_ids = upsert(sorted_rows, change_ids, key=key)
    log.payments.update(change_ids)
    return len(change_ids)


def update_statistics(key: PrimaryKey, *, changed: int = 0) -> None:
    """Let PostgreSQL analyze the payments if it counts none in a table with pages, or if this many have changed.

    It counts none if autovacuum reads the table while its first payments are not committed, for example because an
    import has just failed. PostgreSQL would then look up each payment by reading the whole index of the list.

    After many changes, autovacuum would do the same a minute later. Pages with filters need the statistics earlier: as
    soon as the payments are committed.
    """
    if connection.vendor != "postgresql" or key != ID_KEY:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT reltuples = 0 AND relpages > 0 OR %s > 50 + reltuples / 10 FROM pg_class WHERE oid = %s::regclass",
            [changed, TABLE],
        )
        if cursor.fetchone()[0]:
            cursor.execute(f"ANALYZE (SKIP_LOCKED) {TABLE}")


def are_new(rows: Sequence[StoredRow]) -> bool:
    """Return whether the table contains none of the payments."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # One text instead of a list: psycopg would search every item of a list for characters to escape.
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


def insert_all(rows: Sequence[StoredRow], change_ids: Sequence[int]) -> bool:
    """Insert all rows, or none if another import has inserted one of the payments meanwhile."""
    try:
        with transaction.atomic():
            insert(TABLE, rows, change_ids)
    except IntegrityError:
        return False
    return True


def insert(table: str, rows: Sequence[StoredRow], change_ids: Sequence[int]) -> None:
    values = ((*astuple(row), change_id) for row, change_id in zip(rows, change_ids, strict=True))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with (
                connection.wrap_database_errors,
                cursor.copy(f"COPY {table} ({column_list(WRITTEN_COLUMNS)}) FROM STDIN") as copy,
            ):
                for row in values:
                    copy.write_row(row)
        else:
            placeholders = ", ".join(["%s"] * len(WRITTEN_COLUMNS))
            cursor.executemany(
                f"INSERT INTO {table} ({column_list(WRITTEN_COLUMNS)}) VALUES ({placeholders})", list(values)
            )


def stage(rows: Sequence[StoredRow], change_ids: Sequence[int]) -> None:
    """Replace the content of the staging table."""
    with connection.cursor() as cursor:
        # PostgreSQL would read deleted rows again and again until they are vacuumed. SQLite has no TRUNCATE.
        truncate = "TRUNCATE" if connection.vendor == "postgresql" else "DELETE FROM"
        cursor.execute(f"{truncate} {STAGING_TABLE}")
    insert(STAGING_TABLE, rows, change_ids)


def upsert(rows: Sequence[StoredRow], change_ids: Sequence[int], *, key: PrimaryKey) -> list[int]:
    """Insert or update the payment of each row, and return the change IDs of the payments that changed.

    A payment stays as it is if one of its fixed columns differs from its row, or if no other column does.
    """
    stage(rows, change_ids)
    changes = ", ".join(f"{column} = excluded.{column}" for column in (*CHANGEABLE_COLUMNS, "change_id"))
    is_same_payment = f"({column_list(FIXED_COLUMNS, 'stored')}) = ({column_list(FIXED_COLUMNS, 'excluded')})"
    has_changed = (
        f"({column_list(CHANGEABLE_COLUMNS, 'stored')}) {DIFFERS_FROM[connection.vendor]} "
        f"({column_list(CHANGEABLE_COLUMNS, 'excluded')})"
    )
    with connection.cursor() as cursor:
        # SQLite needs the WHERE clause to tell ON CONFLICT from the ON of a join.
        cursor.execute(
            f"INSERT INTO {TABLE} AS stored ({column_list(WRITTEN_COLUMNS)}) "
            f"SELECT {column_list(WRITTEN_COLUMNS)} FROM {STAGING_TABLE} WHERE TRUE ORDER BY id "
            f"ON CONFLICT ({column_list(key)}) DO UPDATE SET {changes} WHERE {is_same_payment} AND {has_changed} "
            "RETURNING change_id"
        )
        # Not `rowcount`: if the shards write the rows, Citus reports the number of rows that it sent to them.
        return [change_id for (change_id,) in cursor.fetchall()]


def find_conflicts(organization_ids: Collection[int], *, key: PrimaryKey) -> dict[str, InvalidRecord]:
    """Return the errors of the staged rows whose fixed columns differ from the stored payment, by payment ID.

    `organization_ids` are the organizations of the staged rows.
    """
    cases = " ".join(f"WHEN stored.{column} <> {STAGING_TABLE}.{column} THEN '{column}'" for column in FIXED_COLUMNS)
    differing_column = f"CASE {cases} END"
    if key == ID_KEY:
        # A subquery looks up each payment by its ID. A join might read the whole table.
        differing_column = f"(SELECT {differing_column} FROM {TABLE} AS stored WHERE stored.id = {STAGING_TABLE}.id)"
        tables = STAGING_TABLE
    else:
        # Citus cannot run this subquery from a local table. It sends the staged rows to these organizations' shards.
        same_key = " AND ".join(f"stored.{column} = {STAGING_TABLE}.{column}" for column in key)
        in_shards = f"stored.organization_id IN ({', '.join(map(str, organization_ids))})"
        tables = f"{STAGING_TABLE} JOIN {TABLE} AS stored ON {same_key} AND {in_shards}"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {STAGING_TABLE}.id, {differing_column} FROM {tables} WHERE {differing_column} IS NOT NULL"
        )
        return {payment_id: FIXED_COLUMNS[column] for payment_id, column in cursor.fetchall()}


def column_list(columns: Collection[str], table: str | None = None) -> str:
    return ", ".join(f"{table}.{column}" if table else column for column in columns)
