"""Writes rows to the payments table: inserts new payments, updates changed ones, and finds conflicts."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from django.db import IntegrityError, connection, transaction
from msgspec.structs import astuple

from payments.ingest.change_log import ChangeLog
from payments.ingest.errors import InvalidRecord
from payments.ingest.stored_rows import STORED_COLUMNS, StoredRow
from payments.models import Payment
from payments.record import encode
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


@dataclass
class ImportResult:
    """The counts of an import, and the organizations of its payments. A payment may occur twice and count twice."""

    read: int = 0  # records
    refused: int = 0  # records
    ignored: int = 0  # unknown fields that were skipped
    not_cards: int = 0  # members of details that only `Options.not_cards` accepts
    created: int = 0  # payments
    changed: int = 0
    unchanged: int = 0
    columns: Counter[str] = field(default_factory=Counter)  # the changed payments by column
    organization_ids: set[int] = field(default_factory=set, compare=False)

    @property
    def written(self) -> int:
        return self.created + self.changed


def fetch_primary_key() -> PrimaryKey:
    with connection.cursor() as cursor:
        return tuple(connection.introspection.get_primary_key_columns(cursor, TABLE) or ID_KEY)


def prepare_transaction(*, waits_for_writers: bool = False, dry_run: bool = False) -> Target:
    """Create the temporary tables of this transaction, and set what its writes need. Return the table to write.

    `waits_for_writers`: begin when other transactions that write payments have ended, and let later ones wait.
    """
    target = Target(fetch_primary_key(), DRY_RUN_TABLE if dry_run else TABLE)
    # A newer schema may have more columns. They have defaults, which the temporary tables need too.
    definition = f"(LIKE {TABLE} INCLUDING DEFAULTS) ON COMMIT DROP"
    with connection.cursor() as cursor:
        if waits_for_writers and connection.vendor == "postgresql" and target == Target():
            cursor.execute(f"LOCK TABLE {TABLE} IN SHARE ROW EXCLUSIVE MODE")
        if target.key != ID_KEY:
            cursor.execute(SEQUENTIAL)  # so that the transaction can also create organizations
        if connection.vendor == "postgresql":
            # PostgreSQL would otherwise remember every row until the commit, to check deferred constraints then.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        else:
            definition = f"AS SELECT {column_list(WRITTEN_COLUMNS)} FROM {TABLE} LIMIT 0"
        cursor.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {STAGING_TABLE} {definition}")
        if dry_run:
            cursor.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS {DRY_RUN_TABLE} {definition}")
            cursor.execute(f"CREATE UNIQUE INDEX IF NOT EXISTS planned ON {DRY_RUN_TABLE} ({column_list(target.key)})")
            cursor.execute(f"DELETE FROM {DRY_RUN_TABLE}")  # on SQLite, it lasts as long as the connection
    return target


def write_rows(
    rows: Sequence[StoredRow], *, target: Target, log: ChangeLog, result: ImportResult
) -> dict[str, InvalidRecord]:
    """Insert or update the payment of each row. Note the changes in the log, and count them in the result.

    The rows have distinct IDs. They are written in the order of their IDs, so that concurrent imports of the same
    payments do not deadlock. Return the errors of the rows that were not written, as `find_conflicts` does.
    """
    update_statistics(target)
    sorted_rows = sorted(rows, key=attrgetter("id"))
    change_ids = log.assign(sorted_rows)
    stored, conflicts = 0, {}  # if all are new
    # New payments need no staging table. In a distributed table, the shards find out which payments are new.
    if not (target == Target() and are_new(sorted_rows) and insert_all(sorted_rows, change_ids)):
        stage(sorted_rows, change_ids, target=target)
        stored = compare(rows, target=target, columns=result.columns)
        change_ids = upsert(target)
        if max(stored, len(change_ids)) < len(rows):
            conflicts = find_conflicts(rows, target=target)
    log.payments.update(change_ids)
    valid, written = len(rows) - len(conflicts), len(change_ids)
    created = min(valid - stored, written)  # another import may have created a payment after `compare`
    result.created += created
    result.changed += written - created
    result.unchanged += valid - written
    return conflicts


def update_statistics(target: Target, *, changed: int = 0) -> None:
    """Let PostgreSQL analyze the payments if it counts none in a table with pages, or if this many have changed.

    It counts none if autovacuum reads the table while its first payments are not committed, for example because an
    import has just failed. PostgreSQL would then look up each payment by reading the whole index of the list.

    After many changes, autovacuum would do the same a minute later. Pages with filters need the statistics earlier: as
    soon as the payments are committed.
    """
    if connection.vendor != "postgresql" or target != Target():
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
    # One text instead of a list: psycopg would search every item of a list for characters to escape.
    if connection.vendor == "postgresql":
        is_one, ids = "id = ANY (string_to_array(%s, ','))", ",".join(row.id for row in rows)
    else:
        is_one, ids = "id IN (SELECT value FROM json_each(%s))", encode([row.id for row in rows]).decode()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {TABLE} WHERE {is_one})", [ids])
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


def stage(rows: Sequence[StoredRow], change_ids: Sequence[int], *, target: Target) -> None:
    """Replace the content of the staging table. In a dry run, also copy the stored payments that are not yet copied."""
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


def upsert(target: Target) -> list[int]:
    """Insert or update the payment of each staged row, and return the change IDs of the payments that changed.

    A payment stays as it is if one of its fixed columns differs from its row, or if no other column does.
    """
    changes = ", ".join(f"{column} = excluded.{column}" for column in (*CHANGEABLE_COLUMNS, "change_id"))
    has_changed = (
        f"({column_list(CHANGEABLE_COLUMNS, 'stored')}) {DIFFERS_FROM[connection.vendor]} "
        f"({column_list(CHANGEABLE_COLUMNS, 'excluded')})"
    )
    with connection.cursor() as cursor:
        # SQLite needs the WHERE clause to tell ON CONFLICT from the ON of a join.
        cursor.execute(
            f"INSERT INTO {target.table} AS stored ({column_list(WRITTEN_COLUMNS)}) "
            f"SELECT {column_list(WRITTEN_COLUMNS)} FROM {STAGING_TABLE} WHERE TRUE ORDER BY id "
            f"ON CONFLICT ({column_list(target.key)}) DO UPDATE SET {changes} "
            f"WHERE {is_same_payment('excluded')} AND {has_changed} RETURNING change_id"
        )
        # Not `rowcount`: if the shards write the rows, Citus reports the number of rows that it sent to them.
        return [change_id for (change_id,) in cursor.fetchall()]


def find_conflicts(rows: Collection[StoredRow], *, target: Target) -> dict[str, InvalidRecord]:
    """Return the errors of the staged rows whose fixed columns differ from the stored payment, by payment ID."""
    cases = " ".join(f"WHEN stored.{column} <> {STAGING_TABLE}.{column} THEN '{column}'" for column in FIXED_COLUMNS)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {STAGING_TABLE}.id, CASE {cases} END FROM {staged_and_stored(rows, target=target)} "
            f"WHERE NOT {is_same_payment(STAGING_TABLE)}"
        )
        return {payment_id: FIXED_COLUMNS[column] for payment_id, column in cursor.fetchall()}


def column_list(columns: Collection[str], table: str | None = None) -> str:
    return ", ".join(f"{table}.{column}" if table else column for column in columns)
