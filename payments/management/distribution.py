"""The SQL statements that distribute payments and their states by organization over the servers of a Citus cluster.

PostgreSQL's catalogs show which statements have run, so an interrupted distribution can continue.
"""

from collections.abc import Iterator
from typing import NamedTuple

from django.db import connection

PAYMENTS = "payments_payment"
STATES = "payments_accessstate"

# The names that Django's migrations gave the constraints.
PRIMARY_KEY = "payments_payment_pkey"
FOREIGN_KEYS = {
    PAYMENTS: "payments_payment_organization_id_b9527654_fk_payments_",
    STATES: "payments_accessstate_organization_id_0518b8ae_fk_payments_",
}

HAS_CITUS = "SELECT to_regclass('pg_dist_partition') IS NOT NULL"
HAS_COORDINATOR = "SELECT EXISTS (SELECT FROM pg_dist_node WHERE groupid = 0)"

# Workers read this table for /readyz. As a table of Citus, they can read it from the coordinator.
KNOWS_MIGRATIONS = "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'django_migrations'::regclass)"

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


class State(NamedTuple):
    """The state of a distribution."""

    key_has_organization: bool
    has_reference: bool
    knows_migrations: bool
    payments: TableState
    states: TableState

    @property
    def tables(self) -> dict[str, TableState]:
        return {PAYMENTS: self.payments, STATES: self.states}


def is_true(query: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return bool(cursor.fetchone()[0])


def read_state() -> State:
    return State(
        key_has_organization=is_true(KEY_HAS_ORGANIZATION),
        has_reference=is_true(HAS_REFERENCE),
        knows_migrations=is_true(KNOWS_MIGRATIONS),
        payments=read_table(PAYMENTS),
        states=read_table(STATES),
    )


def read_table(table: str) -> TableState:
    with connection.cursor() as cursor:
        cursor.execute(TABLE_STATE, {"table": table, "foreign_key": FOREIGN_KEYS[table]})
        return TableState._make(cursor.fetchone())


def remaining_statements(state: State) -> Iterator[str]:
    """Yield the remaining statements, in order.

    Each statement must run in its own transaction, because Citus refuses some orders of them within one.
    """
    yield from prepare_tables(state)
    # Not create_distributed_table_concurrently: it lets writers continue, but they are stopped anyway.
    if not state.payments.is_distributed:
        yield f"SELECT create_distributed_table('{PAYMENTS}', 'organization_id')"
    if not state.states.is_distributed:
        yield f"SELECT create_distributed_table('{STATES}', 'organization_id', colocate_with => '{PAYMENTS}')"
    yield from complete_tables(state)


def prepare_tables(state: State) -> Iterator[str]:
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


def complete_tables(state: State) -> Iterator[str]:
    # Unlike Django's constraint, this one is not DEFERRABLE: workers would remember every row until the commit, and SET
    # CONSTRAINTS does not reach workers.
    for name, table in state.tables.items():
        if not table.has_foreign_key or not table.is_distributed:
            yield (
                f"ALTER TABLE {name} ADD CONSTRAINT {FOREIGN_KEYS[name]} "
                "FOREIGN KEY (organization_id) REFERENCES payments_organization (id)"
            )
    if not state.knows_migrations:
        yield "SELECT citus_add_local_table_to_metadata('django_migrations')"
    changed = [name for name, table in state.tables.items() if not table.is_distributed or table.has_local_rows]
    for name in changed:
        yield f"SELECT truncate_local_data_after_distributing_table('{name}')"
    if changed:
        # A page reads fewer buffers of a table after VACUUM, and autovacuum starts only after many more changes.
        yield f"VACUUM (ANALYZE) {PAYMENTS}"
