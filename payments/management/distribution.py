"""The SQL statements that distribute payments, their states and changes by organization in a Citus cluster.

PostgreSQL's catalogs show which statements have run, so an interrupted distribution can continue.
"""

from collections.abc import Iterator
from typing import NamedTuple

from django.db import connection

PAYMENTS = "payments_payment"

# The names that Django's migrations gave the constraints. The tables with these foreign keys are distributed.
PRIMARY_KEY = "payments_payment_pkey"
FOREIGN_KEYS = {
    PAYMENTS: "payments_payment_organization_id_b9527654_fk_payments_",
    "payments_accessstate": "payments_accessstate_organization_id_0518b8ae_fk_payments_",
    "payments_change": "payments_change_organization_id_c52c58a7_fk_payments_",
    "payments_statuschange": "payments_statuschang_organization_id_fe6319b4_fk_payments_",
}

HAS_CITUS = "SELECT to_regclass('pg_dist_partition') IS NOT NULL"
HAS_COORDINATOR = "SELECT EXISTS (SELECT FROM pg_dist_node WHERE groupid = 0)"

# Workers read and write these tables on the coordinator if Citus manages them: for /readyz, and to record imports. With
# a table, Citus begins to manage those that its foreign keys connect.
LOCAL_TABLES = ("django_migrations", "payments_importrun")
IS_UNKNOWN = "SELECT NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = '{table}'::regclass)"

# When Citus begins to manage a table on the coordinator, it starts the sequence of the table's IDs again, and the next
# row would get an ID that exists. Rows that a worker inserts have IDs from WORKER_IDS on.
NUMBERED_TABLES = ("payments_apikey", "payments_summedday", "payments_importpart", *LOCAL_TABLES)
WORKER_IDS = 2**48
IS_BEHIND = """
    SELECT coalesce(max(id), 0) > coalesce(pg_sequence_last_value(pg_get_serial_sequence('{table}', 'id')::regclass), 0)
    FROM {table} WHERE id < {worker_ids}
"""

KEY_HAS_ORGANIZATION = """
    SELECT EXISTS (
        SELECT FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
        WHERE conrelid = 'payments_payment'::regclass AND contype = 'p' AND attname = 'organization_id'
    )
"""
HAS_REFERENCE = """
    SELECT EXISTS (
        SELECT FROM pg_dist_partition
        WHERE logicalrelid = 'payments_organization'::regclass AND partmethod = 'n' AND repmodel = 't'
    )
"""
TABLE_STATE = """
    SELECT
        EXISTS (SELECT FROM pg_constraint WHERE conrelid = %(table)s::regclass AND conname = %(foreign_key)s),
        EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = %(table)s::regclass AND partmethod = 'h'),
        pg_relation_size(%(table)s::regclass) > 0
"""


class TableState(NamedTuple):
    """The state of a table that is distributed. Its local rows are invisible once it is distributed."""

    has_foreign_key: bool
    is_distributed: bool
    has_local_rows: bool


class DistributionState(NamedTuple):
    """The state of a distribution."""

    key_has_organization: bool
    has_reference: bool
    unknown: frozenset[str]  # the numbered tables that Citus does not manage yet
    behind: frozenset[str]  # the numbered tables whose sequence is behind their IDs
    tables: dict[str, TableState]  # those that are distributed

    @property
    def restarting(self) -> list[str]:
        """Return the numbered tables whose sequence is behind, or will be when Citus manages the table."""
        return [table for table in NUMBERED_TABLES if table in self.behind | self.unknown]


def is_true(query: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return bool(cursor.fetchone()[0])


def read_state() -> DistributionState:
    return DistributionState(
        key_has_organization=is_true(KEY_HAS_ORGANIZATION),
        has_reference=is_true(HAS_REFERENCE),
        unknown=frozenset(table for table in NUMBERED_TABLES if is_true(IS_UNKNOWN.format(table=table))),
        behind=frozenset(
            table for table in NUMBERED_TABLES if is_true(IS_BEHIND.format(table=table, worker_ids=WORKER_IDS))
        ),
        tables={table: read_table(table) for table in FOREIGN_KEYS},
    )


def read_table(table: str) -> TableState:
    with connection.cursor() as cursor:
        cursor.execute(TABLE_STATE, {"table": table, "foreign_key": FOREIGN_KEYS[table]})
        return TableState._make(cursor.fetchone())


def remaining_statements(state: DistributionState) -> Iterator[str]:
    """Yield the remaining statements, in order.

    Each statement must run in its own transaction, because Citus refuses some orders of them within one.
    """
    yield from prepare_tables(state)
    # Not create_distributed_table_concurrently: it lets writers continue, but they are stopped anyway.
    for name, table in state.tables.items():
        if not table.is_distributed:
            colocation = "" if name == PAYMENTS else f", colocate_with => '{PAYMENTS}'"
            yield f"SELECT create_distributed_table('{name}', 'organization_id'{colocation})"
    yield from complete_tables(state)


def prepare_tables(state: DistributionState) -> Iterator[str]:
    if not state.key_has_organization:
        yield (
            f"ALTER TABLE {PAYMENTS} DROP CONSTRAINT {PRIMARY_KEY}, "
            f"ADD CONSTRAINT {PRIMARY_KEY} PRIMARY KEY (organization_id, id)"
        )
    # With the foreign key, Citus would first convert the table to a local Citus table, and copy the rows twice.
    for name, table in state.tables.items():
        if table.has_foreign_key and not table.is_distributed:
            yield f"ALTER TABLE {name} DROP CONSTRAINT {FOREIGN_KEYS[name]}"
    if not state.has_reference:
        yield "SELECT create_reference_table('payments_organization')"


def complete_tables(state: DistributionState) -> Iterator[str]:
    # Unlike Django's constraint, this one is not DEFERRABLE: workers would remember every row until the commit, and SET
    # CONSTRAINTS does not reach workers.
    for name, table in state.tables.items():
        if not table.has_foreign_key or not table.is_distributed:
            yield (
                f"ALTER TABLE {name} ADD CONSTRAINT {FOREIGN_KEYS[name]} "
                "FOREIGN KEY (organization_id) REFERENCES payments_organization (id)"
            )
    for name in LOCAL_TABLES:
        if name in state.unknown:
            yield f"SELECT citus_add_local_table_to_metadata('{name}', cascade_via_foreign_keys => true)"
    for name in state.restarting:
        yield f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), max(id)) FROM {name} WHERE id < {WORKER_IDS}"
    changed = [name for name, table in state.tables.items() if not table.is_distributed or table.has_local_rows]
    for name in changed:
        yield f"SELECT truncate_local_data_after_distributing_table('{name}')"
    if changed:
        # A page reads fewer buffers of a table after VACUUM, and autovacuum starts only after many more changes.
        yield f"VACUUM (ANALYZE) {PAYMENTS}"
