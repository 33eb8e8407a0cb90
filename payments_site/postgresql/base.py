"""The database backend, where Django looks for it."""

import os
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from django.db import OperationalError
from django.db.backends.postgresql import base

from payments_site.postgresql.connecting import connected_within
from payments_site.watchdog import waits

# What holds for a session. Whatever the values, the list is read along its index: its statements are planned once.
SETTINGS = {"plan_cache_mode": "force_generic_plan"}

# For how long a request may wait; the watchdog ends what takes longer in all, and what does not answer. No request has
# more than one of the server's processors, and so the rows of a statement's parts come part by part.
REQUEST_SETTINGS = {
    **SETTINGS,
    "statement_timeout": "2s",
    "lock_timeout": "1s",
    "max_parallel_workers_per_gather": "0",
}

# For one address of a server's. There may be several, one tried after the other.
CONNECT_SECONDS_MAX = 2
CONNECT_SECONDS_MIN = 0.5


class Socket(socket.socket):
    """That of a connection, under a number of its own, which stays this connection's."""

    def cut(self) -> None:
        with suppress(OSError):  # the other end was quicker
            self.shutdown(socket.SHUT_RDWR)


class DatabaseWrapper(base.DatabaseWrapper):
    """Lets no request wait without end, and asks whether a connection still serves only where there is reason to.

    What a command does may take its time: an import, an export, a migration.
    """

    def get_connection_params(self) -> dict[str, Any]:
        return {"connect_timeout": CONNECT_SECONDS_MAX, **super().get_connection_params()}

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connect = partial(super().get_new_connection, conn_params)
        connection = self.connected_in_time(connect) if waits.database.is_on else connect()
        waits.database.keep(Socket(fileno=os.dup(connection.fileno())))
        return connection

    def connected_in_time(self, connect: Callable[[], Any]) -> Any:
        seconds_left = waits.database.seconds_left
        if seconds_left < CONNECT_SECONDS_MIN:
            raise OperationalError("There is no time left to connect anew.")
        return connected_within(seconds_left, connect)

    def init_connection_state(self) -> None:
        super().init_connection_state()
        settings = REQUEST_SETTINGS if waits.database.is_on else SETTINGS
        with self.connection.cursor() as cursor:
            cursor.execute("; ".join(f"SET {name} = '{value}'" for name, value in settings.items()))

    def _close(self) -> None:
        waits.database.keep(None)
        super()._close()  # type: ignore[misc]  # the stubs leave it out

    def is_usable(self) -> bool:
        """Ask the server only where there is reason to: Django asks in every request.

        A request does not ask a server that has just failed: it might wait for that as long as for everything else.
        """
        if self.errors_occurred and waits.database.is_on:
            return False
        if self.connection is None or self.connection.closed or self.errors_occurred or self.has_unread_words():
            return super().is_usable()
        return True

    def has_unread_words(self) -> bool:
        """Tell whether the server has said something unasked, as it does when it ends, or ends a connection."""
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN)
        return bool(poll.poll(0))
