"""A new connection, for which nobody waits too long: names are resolved, and addresses tried in turn."""

import select
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Generic, Protocol, TypeVar

from psycopg import OperationalError


class Open(Protocol):
    """What has a socket."""

    def fileno(self) -> int: ...


Connection = TypeVar("Connection", bound=Open)


class NoConnectionYet(OperationalError):
    """There was no connection in time; it may still come."""


class Connecting(Generic[Connection]):
    """A connection that is being made, by a thread of its own. Who comes later may find it made."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self.promised: Future[Connection] = Future()
        threading.Thread(target=self.fulfil, args=[connect], name="connecting", daemon=True).start()

    def fulfil(self, connect: Callable[[], Connection]) -> None:
        try:
            self.promised.set_result(connect())
        except Exception as error:  # noqa: BLE001  whoever waits is told, whatever it is
            self.promised.set_exception(error)

    @property
    def is_promising(self) -> bool:
        """Tell whether it is worth waiting for: it has not failed, nor ended again while nobody came for it."""
        if not self.promised.done():
            return True
        return self.promised.exception() is None and not unread_words(self.promised.result()).poll(0)

    def within(self, seconds: float) -> Connection:
        """Return the connection.

        :raises NoConnectionYet: where there is none in time
        :raises Exception: what connecting failed with
        """
        if not wait([self.promised], timeout=seconds).done:
            raise NoConnectionYet("There was no connection in time.")
        return self.promised.result()


def unread_words(connection: Open) -> select.poll:
    """Return what tells whether the server says something unasked, as it does when it ends, or ends a connection."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return poll
