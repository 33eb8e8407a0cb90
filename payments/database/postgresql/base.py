"""The database backend, where Django looks for it."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
from django.db import OperationalError, connections
from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

from payments.database.cursors import ObservedCursors
from payments.database.postgresql.connecting import Connecting, NoConnectionYet, unread_words
from payments.runtime.deadlines import SPARE_SECONDS_MAX, Line, waits

# Whatever the values, the list is read along its index: its statements are planned once. Not where Citus plans, which
# has to know the values for a statement with subselects, and would refuse it.
PLANNED_ONCE = """
    SELECT set_config('plan_cache_mode', 'force_generic_plan', false) WHERE to_regclass('pg_dist_partition') IS NULL
"""

# For how long a request may wait; the watchdog ends what takes longer in all, and what does not answer. No request has
# more than one of the server's processors, and so the rows of a statement's parts come part by part.
REQUEST_SETTINGS = {
    "statement_timeout": "2s",
    "lock_timeout": "1s",
    "max_parallel_workers_per_gather": "0",
}

# For one address of a server's. There may be several, one tried after the other.
CONNECT_SECONDS_MAX = 2
CONNECT_SECONDS_MIN = 0.2

# Of all that a request may wait, for a new connection where there is another server to ask. It goes on being made.
CONNECT_SECONDS_BESIDE_ANOTHER = 0.3

# There a line is cut sooner, by SPARE_SECONDS_MAX, and whose line is cut is passed over. A server that is well has
# ended its statement by then, even where it was connected to anew.
BESIDE_ANOTHER = {"statement_timeout": "1.6s"}


class ServerLine(Line):
    """The socket of a connection, under a number of its own, which stays this connection's."""

    def __init__(self, connection: psycopg.Connection[Any], *, spare_seconds: float) -> None:
        self.connection = connection
        self.spare_seconds = spare_seconds
        self.socket = socket.socket(fileno=os.dup(connection.fileno()))

    @property
    def is_waited_on(self) -> bool:
        return self.connection.pgconn.transaction_status == TransactionStatus.ACTIVE

    def cut(self) -> None:
        with suppress(OSError):  # the other end was quicker
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.socket.close()


class DatabaseWrapper(ObservedCursors, base.DatabaseWrapper):
    """Lets no request wait without end, and asks whether a connection still serves only where there is reason to.

    What a command does may take its time: an import, an export, a migration.
    """

    connecting: Connecting[Any] | None = None

    @property
    def is_only_server(self) -> bool:
        return len(connections.settings) == 1

    @property
    def request_settings(self) -> dict[str, str]:
        return REQUEST_SETTINGS if self.is_only_server else REQUEST_SETTINGS | BESIDE_ANOTHER

    def get_connection_params(self) -> dict[str, Any]:
        return {"connect_timeout": CONNECT_SECONDS_MAX, **super().get_connection_params()}

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connect = partial(super().get_new_connection, conn_params)
        connection = self.connected_in_time(connect) if waits.database.is_on else connect()
        spare_seconds = 0 if self.is_only_server else SPARE_SECONDS_MAX
        waits.database.keep(ServerLine(connection, spare_seconds=spare_seconds), name=self.alias)
        self.unread_words = unread_words(connection)
        return connection

    def connected_in_time(self, connect: Callable[[], Any]) -> Any:
        """Wait for a connection no longer than there is time; a request that comes later finds it made."""
        seconds_left = waits.database.seconds_left
        if seconds_left < CONNECT_SECONDS_MIN:
            raise OperationalError("There is no time left to connect anew.")
        if not self.is_only_server:
            seconds_left = min(seconds_left, CONNECT_SECONDS_BESIDE_ANOTHER)
        connecting, self.connecting = self.connecting, None
        if connecting is None or not connecting.is_promising:
            connecting = Connecting(connect)
        try:
            return connecting.within(seconds_left)
        except NoConnectionYet:
            self.connecting = connecting
            raise

    def init_connection_state(self) -> None:
        super().init_connection_state()
        settings = self.request_settings if waits.database.is_on else {}
        with self.connection.cursor() as cursor:
            cursor.execute("; ".join([PLANNED_ONCE, *(f"SET {name} = '{value}'" for name, value in settings.items())]))

    def _close(self) -> None:
        waits.database.keep(None, name=self.alias)
        super()._close()  # type: ignore[misc]  # the stubs leave it out

    def is_usable(self) -> bool:
        """Ask the server only where there is reason to: Django asks in every request.

        A request does not ask a server that has just failed: it might wait for that as long as for everything else.
        """
        if self.errors_occurred and waits.database.is_on:
            return False
        if self.connection is None or self.connection.closed or self.errors_occurred:
            return super().is_usable()
        return not self.unread_words.poll(0) or super().is_usable()
