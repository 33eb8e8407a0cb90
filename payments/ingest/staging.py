"""The temporary tables of an import: the rows of a batch are staged, and compared with the stored payments.

A dry run writes a second temporary table instead of the payments.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from django.db import connection
from msgspec.structs import astuple

from payments.database.workers import uses_citus
from payments.ingest.errors import InvalidRecord
from payments.ingest.stored_rows import STORED_COLUMNS, StoredRow
from payments.models import Payment
from payments.rows import FIELDS

TABLE = Payment._meta.db_table  # noqa: SLF001  Django's documented name for a model's options
STAGING_TABLE = "staged_payments"
DRY_RUN_TABLE = "planned_payments"

# The columns that an import never changes, with the error of a row in which they differ from the stored payment. They
# determine the payment's list and its position there.
FIXED_COLUMNS = {
    "organization_id": InvalidRecord.of("organizationId", "this payment belongs to another organization"),
    "mode": InvalidRecord.of("mode", "this payment exists in the other mode"),
    "created_at": InvalidRecord.of("createdAt", "must not change: this payment was created at another time"),
}
TITLES = {column: title for field in FIELDS for column, title in zip(field.columns, field.titles, strict=True)}
CHANGEABLE_COLUMNS = tuple(column for column in TITLES if column not in {"id", *FIXED_COLUMNS})

# The columns that an import writes.
WRITTEN_COLUMNS = (*STORED_COLUMNS, "change_id")

# All columns of the table.
TABLE_COLUMNS = (*WRITTEN_COLUMNS, "paid_before", "status_before", "anonymized_at")

# The columns of the table's primary key: the ID or, in a table that is distributed by organization, the organization
# and the ID (docs/citus.md).
PrimaryKey: TypeAlias = tuple[str, ...]
ID_KEY: PrimaryKey = ("id",)

# Citus changes the shards of a server one after the other, through one connection. In a transaction that has changed
# shards in parallel, it refuses to write reference tables.
SEQUENTIAL = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"

# How to compare rows with NULL values.
DIFFERS_FROM = {"postgresql": "IS DISTINCT FROM", "sqlite": "IS NOT"}


class Target(NamedTuple):
    """The table that an import writes: the payments or, in a dry run, a temporary table with copies of some."""

    key: PrimaryKey = ID_KEY
    table: str = TABLE


def fetch_primary_key() -> PrimaryKey:
    """Return the columns of the primary key. Only with Citus, they must be read."""
    if not uses_citus():
        return ID_KEY
    with connection.cursor() as cursor:
        return tuple(connection.introspection.get_primary_key_columns(cursor, TABLE) or ID_KEY)


def prepare_transaction(*, waits_for_writers: bool = False, dry_run: bool = False) -> Target:
    """Set what the writes of this transaction need, and create the table of a dry run. Return the table to write.

    `waits_for_writers`: begin when other transactions that write payments have ended, and let later ones wait.
    """
    target = Target(fetch_primary_key(), DRY_RUN_TABLE if dry_run else TABLE)
    with connection.cursor() as cursor:
        if waits_for_writers and connection.vendor == "postgresql" and target == Target():
            cursor.execute(f"LOCK TABLE {TABLE} IN SHARE ROW EXCLUSIVE MODE")
        if target.key != ID_KEY:
            cursor.execute(SEQUENTIAL)  # so that the transaction can also create organizations
        if connection.vendor == "postgresql":
            # PostgreSQL would otherwise remember every row until the commit, to check deferred constraints then.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        if dry_run:
            create_temporary(DRY_RUN_TABLE)
            cursor.execute(f"CREATE UNIQUE INDEX IF NOT EXISTS planned ON {DRY_RUN_TABLE} ({column_list(target.key)})")
            cursor.execute(f"DELETE FROM {DRY_RUN_TABLE}")  # on SQLite, it lasts as long as the connection
    return target


def create_temporary(table: str) -> None:
    """Create a temporary table with the columns of the payments, if it does not exist."""
    # A newer schema may have more columns. They have defaults, which the temporary tables need too.
    definition = f"(LIKE {TABLE} INCLUDING DEFAULTS) ON COMMIT DROP"
    if connection.vendor == "sqlite":
        definition = f"AS SELECT {column_list(TABLE_COLUMNS)} FROM {TABLE} LIMIT 0"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {table} {definition}")


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


def stage(rows: Sequence[StoredRow], change_ids: Sequence[int], *, target: Target) -> None:
    """Replace the content of the staging table. In a dry run, also copy the stored payments that are not yet copied.

    New payments need no such table, so it is created here: an import of one payment would spend its time on it.
    """
    create_temporary(STAGING_TABLE)
    with connection.cursor() as cursor:
        # PostgreSQL would read deleted rows again and again until they are vacuumed. SQLite has no TRUNCATE.
        truncate = "TRUNCATE" if connection.vendor == "postgresql" else "DELETE FROM"
        cursor.execute(f"{truncate} {STAGING_TABLE}")
        insert(STAGING_TABLE, rows, change_ids)
        if target.table == DRY_RUN_TABLE:
            stored = staged_and_stored(rows, target=Target(target.key))
            columns = f"{column_list(WRITTEN_COLUMNS, 'stored')} FROM {stored} WHERE TRUE ON CONFLICT DO NOTHING"
            cursor.execute(f"INSERT INTO {DRY_RUN_TABLE} ({column_list(WRITTEN_COLUMNS)}) SELECT {columns}")


def staged_and_stored(rows: Collection[StoredRow], *, target: Target) -> str:
    """Return the FROM clause of the staged rows, which are `rows`, and the stored payments with the same key."""
    same_key = " AND ".join(f"stored.{column} = {STAGING_TABLE}.{column}" for column in target.key)
    if target.key != ID_KEY and target.table == TABLE:
        # Citus cannot run a subquery from a local table. It sends the staged rows to these organizations' shards.
        organization_ids = ", ".join({str(row.organization_id) for row in rows})
        same_key += f" AND stored.organization_id IN ({organization_ids})"
    elif connection.vendor == "postgresql":
        # Because of OFFSET, PostgreSQL looks up each payment by its ID. A join might read the whole table.
        lookup = f"SELECT * FROM {target.table} AS stored WHERE {same_key} OFFSET 0"
        return f"{STAGING_TABLE} CROSS JOIN LATERAL ({lookup}) AS stored"
    return f"{STAGING_TABLE} JOIN {target.table} AS stored ON {same_key}"


def compare(rows: Collection[StoredRow], *, target: Target, columns: Counter[str]) -> int:
    """Return how many payments of the staged rows are stored. Count those that will change in `columns`."""
    differs_from = f"{DIFFERS_FROM[connection.vendor]} {STAGING_TABLE}"
    numbers = (f"COUNT(CASE WHEN stored.{name} {differs_from}.{name} THEN 1 END)" for name in CHANGEABLE_COLUMNS)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT COUNT(*), {', '.join(numbers)} FROM {staged_and_stored(rows, target=target)} "
            f"WHERE {is_same_payment(STAGING_TABLE)}"
        )
        stored, *differing = cursor.fetchone()
    columns.update({TITLES[name]: number for name, number in zip(CHANGEABLE_COLUMNS, differing, strict=True)})
    return int(stored)


def is_same_payment(row: str) -> str:
    return f"({column_list(FIXED_COLUMNS, 'stored')}) = ({column_list(FIXED_COLUMNS, row)})"


def find_conflicts(rows: Collection[StoredRow], *, target: Target) -> dict[str, InvalidRecord]:
    """Return the errors of the staged rows whose fixed columns differ from the stored payment, by payment ID."""
    cases = " ".join(f"WHEN stored.{column} <> {STAGING_TABLE}.{column} THEN '{column}'" for column in FIXED_COLUMNS)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {STAGING_TABLE}.id, CASE {cases} END FROM {staged_and_stored(rows, target=target)} "
            f"WHERE NOT {is_same_payment(STAGING_TABLE)}"
        )
        return {payment_id: FIXED_COLUMNS[column] for payment_id, column in cursor.fetchall()}


def column_list(columns: Iterable[str], table: str | None = None) -> str:
    return ", ".join(f"{table}.{column}" if table else column for column in columns)
