"""Which workers of a Citus cluster respond. The coordinator asks them, because the service may not reach them."""

from functools import lru_cache
from time import monotonic
from typing import Any

from django.db import Error, connections, transaction

from payments.runtime.process import process

# A frozen worker accepts no connection. Probes of the service wait for a second.
CONNECT_MILLISECONDS_MAX = 300
ASK_SECONDS_MAX = 0.6
PERIOD_SECONDS = 5

LIMIT = f"SET LOCAL citus.node_connection_timeout = {CONNECT_MILLISECONDS_MAX}"
ASK = "SELECT nodename || ':' || nodeport, success FROM run_command_on_workers('SELECT 1')"


def find_workers(using: str) -> dict[str, bool]:
    """Return whether each worker responds, by its address; nothing without Citus, or if the coordinator fails.

    The result may be a few seconds old.
    """
    return ask_workers(using, int(monotonic() // PERIOD_SECONDS))


@lru_cache(maxsize=2)
def ask_workers(using: str, _period: int) -> dict[str, bool]:
    database: Any = connections[using]
    if not hasattr(database, "uses_citus"):  # our engine for PostgreSQL knows it after connecting
        return {}
    try:
        with process.deadline.shortened(ASK_SECONDS_MAX):
            database.ensure_connection()
            return ask(using) if database.uses_citus else {}
    except Error:
        return {}


def ask(using: str) -> dict[str, bool]:
    with transaction.atomic(using), connections[using].cursor() as cursor:
        cursor.execute(LIMIT)
        cursor.execute(ASK)
        return dict(cursor.fetchall())
