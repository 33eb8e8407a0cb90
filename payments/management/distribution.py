"""How payments are distributed over the servers of a Citus cluster, by organization: what that takes, and what is left.

Each statement leaves a state that the catalogs tell, so that whoever was cut off goes on where that was.
"""

from collections.abc import Iterator
from typing import NamedTuple

from django.db import connection

# Under the names that Django has given them.
PRIMARY_KEY = "payments_payment_pkey"
FOREIGN_KEY = "payments_payment_organization_id_b9527654_fk_payments_"

HAS_CITUS = "SELECT to_regclass('pg_dist_partition') IS NOT NULL"
KNOWS_COORDINATOR = "SELECT EXISTS (SELECT FROM pg_dist_node WHERE groupid = 0)"

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
    """How far a database has come."""

    key_has_organization: bool
    has_foreign_key: bool
    has_reference: bool
    is_distributed: bool
    has_local_rows: bool  # which nobody sees any more once they are distributed


def is_true(question: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(question)
        return bool(cursor.fetchone()[0])


def state() -> State:
    with connection.cursor() as cursor:
        cursor.execute(STATE, [FOREIGN_KEY])
        return State._make(cursor.fetchone())


def statements(state: State) -> Iterator[str]:
    """Yield what there is to do, in order; each statement is a transaction of its own."""
    if not state.key_has_organization:
        yield (
            f"ALTER TABLE payments_payment DROP CONSTRAINT {PRIMARY_KEY}, "
            f"ADD CONSTRAINT {PRIMARY_KEY} PRIMARY KEY (organization_id, id)"
        )
    # With it Citus would take payments in as a table of its own first, and copy them twice.
    if state.has_foreign_key and not state.is_distributed:
        yield f"ALTER TABLE payments_payment DROP CONSTRAINT {FOREIGN_KEY}"
    if not state.has_reference:
        yield "SELECT create_reference_table('payments_organization')"
    if not state.is_distributed:
        yield "SELECT create_distributed_table('payments_payment', 'organization_id')"
    # Not deferred, as Django's: workers would remember each row until the end, and no SET CONSTRAINTS reaches them.
    if not state.has_foreign_key or not state.is_distributed:
        yield (
            f"ALTER TABLE payments_payment ADD CONSTRAINT {FOREIGN_KEY} "
            "FOREIGN KEY (organization_id) REFERENCES payments_organization (id)"
        )
    if state.has_local_rows:
        yield "SELECT truncate_local_data_after_distributing_table('payments_payment')"
    if not state.is_distributed or state.has_local_rows:
        yield "ANALYZE payments_payment"
