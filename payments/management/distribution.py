"""The SQL statements that distribute payments by organization over the servers of a Citus cluster.

PostgreSQL's catalogs show which statements have run, so an interrupted distribution can continue.
"""

from collections.abc import Iterator
from typing import NamedTuple

from django.db import connection

# The names that Django's migrations gave the constraints.
PRIMARY_KEY = "payments_payment_pkey"
FOREIGN_KEY = "payments_payment_organization_id_b9527654_fk_payments_"

HAS_CITUS = "SELECT to_regclass('pg_dist_partition') IS NOT NULL"
HAS_COORDINATOR = "SELECT EXISTS (SELECT FROM pg_dist_node WHERE groupid = 0)"

STATE = """
    SELECT
        EXISTS (
            SELECT FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey)
            WHERE conrelid = 'payments_payment'::regclass AND contype = 'p' AND attname = 'organization_id'
        ),
        EXISTS (SELECT FROM pg_constraint WHERE conrelid = 'payments_payment'::regclass AND conname = %s),
        EXISTS (
            SELECT FROM pg_dist_partition
            WHERE logicalrelid = 'payments_organization'::regclass AND partmethod = 'n' AND repmodel = 't'
        ),
        EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'payments_payment'::regclass AND partmethod = 'h'),
        pg_relation_size('payments_payment') > 0
"""


class State(NamedTuple):
    """The state of a distribution. A table's local rows are invisible once the table is distributed."""

    key_has_organization: bool
    has_foreign_key: bool
    has_reference: bool
    is_distributed: bool
    has_local_rows: bool


def is_true(query: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return bool(cursor.fetchone()[0])


def read_state() -> State:
    with connection.cursor() as cursor:
        cursor.execute(STATE, [FOREIGN_KEY])
        return State._make(cursor.fetchone())


def remaining_statements(state: State) -> Iterator[str]:
    """Yield the remaining statements, in order.

    Each statement must run in its own transaction, because Citus refuses some orders of them within one.
    """
    if not state.key_has_organization:
        yield (
            f"ALTER TABLE payments_payment DROP CONSTRAINT {PRIMARY_KEY}, "
            f"ADD CONSTRAINT {PRIMARY_KEY} PRIMARY KEY (organization_id, id)"
        )
    # With the foreign key, Citus would first convert payments to a local Citus table, and copy them twice.
    if state.has_foreign_key and not state.is_distributed:
        yield f"ALTER TABLE payments_payment DROP CONSTRAINT {FOREIGN_KEY}"
    if not state.has_reference:
        yield "SELECT create_reference_table('payments_organization')"
    # Not create_distributed_table_concurrently: it lets writers continue, but they are stopped anyway.
    if not state.is_distributed:
        yield "SELECT create_distributed_table('payments_payment', 'organization_id')"
    # Unlike Django's constraint, this one is not DEFERRABLE: workers would remember every row until the commit, and SET
    # CONSTRAINTS does not reach workers.
    if not state.has_foreign_key or not state.is_distributed:
        yield (
            f"ALTER TABLE payments_payment ADD CONSTRAINT {FOREIGN_KEY} "
            "FOREIGN KEY (organization_id) REFERENCES payments_organization (id)"
        )
    if state.has_local_rows:
        yield "SELECT truncate_local_data_after_distributing_table('payments_payment')"
    if not state.is_distributed or state.has_local_rows:
        yield "ANALYZE payments_payment"
