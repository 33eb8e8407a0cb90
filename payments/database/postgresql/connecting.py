"""New connections with a time limit for the whole attempt: name resolution and all addresses together."""

import select
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from psycopg import OperationalError


class ConnectionPending(OperationalError):
    """The connection is not open yet. A later attempt can use it."""


class PendingConnection:
    """A connection that a background thread opens."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self.future: Future[Any] = Future()
        threading.Thread(target=self.run, args=[connect], name="connecting", daemon=True).start()

    @classmethod
    def reuse_or_start(cls, pending: "PendingConnection | None", connect: Callable[[], Any]) -> "PendingConnection":
        """Return the earlier attempt if it can still succeed, or start a new one."""
        return pending if pending is not None and pending.is_usable else cls(connect)

    def run(self, connect: Callable[[], Any]) -> None:
        try:
            self.future.set_result(connect())
        except Exception as error:  # noqa: BLE001  `get` raises it in the thread that waits
            self.future.set_exception(error)

    @property
    def is_usable(self) -> bool:
        """Return whether the attempt is in progress, or has opened a connection that the server has not ended since."""
        if not self.future.done():
            return True
        return self.future.exception() is None and not poll_for_input(self.future.result()).poll(0)

    def get(self, *, timeout: float) -> Any:
        """Return the connection; `timeout` is in seconds.

        :raises ConnectionPending: it is not open in time
        :raises Exception: the error of `connect`
        """
        if not wait([self.future], timeout=timeout).done:
            raise ConnectionPending("The connection was not open in time.")
        return self.future.result()


def poll_for_input(connection: Any) -> select.poll:
    """Return a poll object that reports unread input. On an idle connection, input means that the server ended it."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return poll
