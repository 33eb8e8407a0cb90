"""Whether the database is a Citus cluster, and which workers respond: the service may not reach them itself."""

from contextlib import suppress
from functools import lru_cache
from time import monotonic
from typing import Any

from django.db import Error, connections, transaction

from payments.runtime.process import process
from payments.runtime.servers import PRIMARY, has_replica

ASK_SECONDS_MAX = 0.6  # probes of the service wait for a second
PERIOD_SECONDS = 5

LIMIT = "SET LOCAL citus.node_connection_timeout = 300"  # in ms: a frozen worker accepts no connection
ASK = "SELECT nodename || ':' || nodeport, success FROM run_command_on_workers('SELECT 1')"


@lru_cache(maxsize=2)
def ask_workers(using: str, _period: int) -> dict[str, bool]:
    database: Any = connections[using]
    try:
        with process.deadline.shortened(ASK_SECONDS_MAX):
            database.ensure_connection()
            # Our engine for PostgreSQL knows it after connecting.
            return ask(using) if getattr(database, "uses_citus", False) else {}
    except Error:
        return {}


def find_workers(using: str) -> dict[str, bool]:
    """Return whether each worker responds, by its address, as found in the last seconds; {} if that is unknown."""
    return ask_workers(using, int(monotonic() // PERIOD_SECONDS))


def ask(using: str) -> dict[str, bool]:
    with transaction.atomic(using), connections[using].cursor() as cursor:
        cursor.execute(LIMIT)
        cursor.execute(ASK)
        return dict(cursor.fetchall())


def uses_citus() -> bool:
    """Return whether the primary distributes payments by Citus.

    Our engine knows it as soon as the connection is open. While that fails, suppose it: then each statement finds the
    server that responds, or has the error.
    """
    database: Any = connections[PRIMARY]
    if getattr(database, "uses_citus", False) is None:
        with suppress(Error):
            if has_replica():
                process.primary.run(lambda _alias: database.ensure_connection())
            else:
                database.ensure_connection()
    return getattr(database, "uses_citus", False) is not False
