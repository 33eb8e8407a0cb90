"""A new connection within a time: names are resolved, and addresses tried in turn, as long as that takes."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Protocol, TypeVar

from psycopg import OperationalError


class Closable(Protocol):
    """What is open, and need not be."""

    def close(self) -> None: ...


Connection = TypeVar("Connection", bound=Closable)


def connected_within(seconds: float, connect: Callable[[], Connection]) -> Connection:
    """Return what `connect` does. What it returns too late is closed.

    :raises OperationalError: where there is no connection in time, or none at all
    """
    promised: Future[Connection] = Future()
    threading.Thread(target=fulfil, args=[promised, connect], name="connecting", daemon=True).start()
    try:
        return promised.result(timeout=seconds)
    except TimeoutError:
        if promised.cancel():
            raise OperationalError("There was no connection in time.") from None
        return promised.result()


def fulfil(promised: Future[Connection], connect: Callable[[], Connection]) -> None:
    try:
        connection = connect()
    except Exception as error:  # noqa: BLE001  whoever waits is told, whatever it is
        with suppress(InvalidStateError):
            promised.set_exception(error)
        return
    try:
        promised.set_result(connection)
    except InvalidStateError:  # nobody waits any more
        connection.close()
