"""Writes rows to the payments table: inserts new payments, and updates changed ones."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from django.db import IntegrityError, connection, transaction

from payments.ingest.change_log import ChangeLog
from payments.ingest.errors import InvalidRecord
from payments.ingest.staging import (
    CHANGEABLE_COLUMNS,
    DIFFERS_FROM,
    STAGING_TABLE,
    TABLE,
    WRITTEN_COLUMNS,
    Target,
    column_list,
    compare,
    find_conflicts,
    insert,
    is_same_payment,
    stage,
)
from payments.ingest.stored_rows import StoredRow
from payments.models import StatusChange
from payments.record import encode

# The columns with the values before the last import, if it changed them.
BEFORE = {"paid_before": "paid_at", "status_before": "status"}


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

    def undo(self) -> None:
        """Forget the payments of an import that was rolled back."""
        self.created = self.changed = self.unchanged = 0
        self.columns.clear()


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
        change_ids = upsert(target, log)
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


def upsert(target: Target, log: ChangeLog) -> list[int]:
    """Insert or update the payment of each staged row, and return the change IDs of the payments that changed.

    A payment stays as it is if one of its fixed columns differs from its row, or if no other column does. Note the days
    in the log on which payments were paid before, and are not now. Record the statuses that changed.
    """
    differs_from = DIFFERS_FROM[connection.vendor]
    changes = ", ".join(
        [
            *(f"{column} = excluded.{column}" for column in (*CHANGEABLE_COLUMNS, "change_id")),
            *(f"{before} = {value_before(column)}" for before, column in BEFORE.items()),
            "anonymized_at = NULL",
        ]
    )
    has_changed = (
        f"({column_list(CHANGEABLE_COLUMNS, 'stored')}) {differs_from} ({column_list(CHANGEABLE_COLUMNS, 'excluded')})"
    )
    with connection.cursor() as cursor:
        # SQLite needs the WHERE clause to tell ON CONFLICT from the ON of a join.
        cursor.execute(
            f"INSERT INTO {target.table} AS stored ({column_list(WRITTEN_COLUMNS)}) "
            f"SELECT {column_list(WRITTEN_COLUMNS)} FROM {STAGING_TABLE} WHERE TRUE ORDER BY id "
            f"ON CONFLICT ({column_list(target.key)}) DO UPDATE SET {changes} "
            f"WHERE {is_same_payment('excluded')} AND {has_changed} RETURNING change_id, {column_list(BEFORE)}"
        )
        # Not `rowcount`: if the shards write the rows, Citus reports the number of rows that it sent to them.
        written = cursor.fetchall()
    log.add_paid_before((change_id, paid_before) for change_id, paid_before, _ in written)
    if target.table == TABLE:
        insert_status_changes({change_id for change_id, _, status_before in written if status_before}, log=log)
    return [change_id for change_id, _, _ in written]


def value_before(column: str) -> str:
    """Return the SQL expression for the former value of a column, if the upsert changes it."""
    return f"CASE WHEN stored.{column} {DIFFERS_FROM[connection.vendor]} excluded.{column} THEN stored.{column} END"


def insert_status_changes(change_ids: Collection[int], *, log: ChangeLog) -> None:
    """Record the new statuses of the payments with these changes, which this transaction has just written."""
    if not change_ids:
        return
    organization_ids = sorted({log.accesses[change_id].organization_id for change_id in change_ids})
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {StatusChange._meta.db_table} "  # noqa: SLF001  documented
            "(organization_id, payment_id, change_id, status, import_id) "
            f"SELECT organization_id, id, change_id, status, {log.import_id} FROM {TABLE} "
            f"WHERE change_id IN ({column_list(map(str, sorted(change_ids)))}) "
            f"AND organization_id IN ({column_list(map(str, organization_ids))}) AND status_before IS NOT NULL"
        )
