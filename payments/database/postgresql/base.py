"""The PostgreSQL backend. Django requires a module named `base` with a class named `DatabaseWrapper`.

It overrides members of Django's backend that are not documented: `Database`, `get_new_connection`,
`init_connection_state` and `is_usable`. Django has no public API for the time limits that they set. psycopg documents
no way to limit a wait, but all its waits call `Connection.wait`.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import psycopg
from django.db import OperationalError
from django.db.backends.postgresql import base
from psycopg.abc import RV, PQGen
from psycopg.errors import _WaitTimeout

from payments.database.cursors import InstrumentedDatabaseWrapper
from payments.database.postgresql.connecting import ConnectionPending, PendingConnection, poll_for_input
from payments.database.postgresql.planning import PLANNER_SETTINGS, SESSION_SETTINGS
from payments.runtime import time_limits
from payments.runtime.process import process
from payments.runtime.servers import has_replica

# Plan each prepared statement once: the list is read along its index, whatever the values. Citus is excepted, because
# it needs the values to plan a statement with subselects, and refuses a generic plan.
PLAN_ONCE = """
    SELECT set_config('plan_cache_mode', 'force_generic_plan', false) WHERE to_regclass('pg_dist_partition') IS NULL
"""

# For each address of a server. A URL may name several addresses, which libpq tries in turn.
CONNECT_SECONDS_MAX = 2


class TimedConnection(psycopg.Connection[Any]):
    """A connection that waits for the server until the deadline of its thread. After that, it is closed.

    Django also finds the driver's errors and `Binary` here.
    """

    Binary = psycopg.Binary

    @cached_property
    def statement_cursor(self) -> psycopg.RawCursor[Any]:
        """Return the cursor for compiled statements. A new one for each would take 5 µs."""
        return psycopg.RawCursor(self)

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        deadline = process.deadline
        seconds = deadline.wait_seconds
        if seconds is None or timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, seconds)
        except _WaitTimeout:
            self.close()
            deadline.fail_wait()


class DatabaseWrapper(InstrumentedDatabaseWrapper, base.DatabaseWrapper):
    """Django's backend with time limits for requests. Commands, such as imports and migrations, have no limits."""

    Database = TimedConnection  # type: ignore[assignment]  # the stubs expect a module
    pending: PendingConnection | None = None
    uses_citus: bool | None = None  # unknown before the first connection

    @property
    def request_settings(self) -> dict[str, str]:
        """Return the server's limits for a request. `TimedConnection` limits all statements together.

        With a second server, the first wait ends before the deadline, and its error opens the circuit breaker. A
        healthy server has ended the statement by then, even if the connection was new.
        """
        statement = time_limits.STATEMENT_BEFORE_FAILOVER if has_replica() else time_limits.STATEMENT
        limits = {"statement_timeout": statement.milliseconds, "lock_timeout": time_limits.LOCK.milliseconds}
        return limits | PLANNER_SETTINGS

    def get_connection_params(self) -> dict[str, Any]:
        return {"connect_timeout": CONNECT_SECONDS_MAX, **super().get_connection_params()}

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connect = partial(super().get_new_connection, conn_params)
        connection = self.connect_in_time(connect) if process.deadline.is_active else connect()
        self.input_poll = poll_for_input(connection)
        return connection

    def connect_in_time(self, connect: Callable[[], Any]) -> Any:
        """Return a new connection before the deadline. If it takes longer, a later request uses it.

        :raises OperationalError: the time is not enough
        """
        timeout = self.connect_timeout()
        pending, self.pending = PendingConnection.reuse_or_start(self.pending, connect), None
        try:
            return pending.get(timeout=timeout)
        except ConnectionPending:
            self.pending = pending
            raise

    def connect_timeout(self) -> float:
        """Return how many seconds the request may wait for a new connection.

        :raises OperationalError: the deadline is too close for a new connection
        """
        seconds = process.deadline.remaining_seconds
        if seconds < time_limits.NEW_CONNECTION_MIN.seconds:
            raise OperationalError("The deadline is too close for a new connection.")
        return min(seconds, time_limits.CONNECTION_BEFORE_FAILOVER.seconds) if has_replica() else seconds

    def init_connection_state(self) -> None:
        super().init_connection_state()
        settings = SESSION_SETTINGS | (self.request_settings if process.deadline.is_active else {})
        with self.connection.cursor() as cursor:
            cursor.execute("; ".join([PLAN_ONCE, *(f"SET {name} = '{value}'" for name, value in settings.items())]))
            self.uses_citus = cursor.fetchone() is None

    def is_usable(self) -> bool:
        """Return whether the connection works. Django asks before each request, so a query would be expensive.

        A connection without errors and without unread input works. After an error, a request replaces the connection
        without a query, which might take all of the remaining time.
        """
        if self.errors_occurred and process.deadline.is_active:
            return False
        if self.connection is None or self.connection.closed or self.errors_occurred:
            return super().is_usable()
        return not self.input_poll.poll(0) or super().is_usable()
