"""New connections are open in time, or are left to a later request."""

import socket
import threading
from typing import NoReturn

import pytest
from psycopg import OperationalError

from payments.database.postgresql.connecting import ConnectionPending, PendingConnection
from tests.support.waiting import SECONDS_MAX


def test_connection_that_opens_in_time_is_returned() -> None:
    with socket.socket() as connection:
        assert PendingConnection(lambda: connection).get(timeout=SECONDS_MAX) is connection


@pytest.mark.parametrize("kind", [OperationalError, TimeoutError, ValueError])
def test_error_of_the_attempt_is_raised(kind: type[Exception]) -> None:
    def fail() -> NoReturn:
        raise kind("refused")

    pending = PendingConnection(fail)

    with pytest.raises(kind, match="refused"):
        pending.get(timeout=SECONDS_MAX)
    assert not pending.is_usable


def test_late_connection_serves_a_later_attempt() -> None:
    connection, server = socket.socketpair()
    may_open = threading.Event()

    def open_late() -> socket.socket:
        may_open.wait()
        return connection

    pending = PendingConnection(open_late)
    with connection, server:
        with pytest.raises(ConnectionPending, match="in time"):
            pending.get(timeout=0.01)
        assert PendingConnection.reuse_or_start(pending, open_late) is pending
        may_open.set()

        assert pending.get(timeout=SECONDS_MAX) is connection


def test_connection_that_the_server_ended_is_not_reused() -> None:
    connection, server = socket.socketpair()
    with connection:
        pending = PendingConnection(lambda: connection)
        pending.get(timeout=SECONDS_MAX)
        reused = PendingConnection.reuse_or_start(pending, lambda: connection)

        server.close()

        assert reused is pending
        assert PendingConnection.reuse_or_start(pending, lambda: connection) is not pending


def test_first_attempt_starts_a_connection() -> None:
    with socket.socket() as connection:
        assert PendingConnection.reuse_or_start(None, lambda: connection).get(timeout=SECONDS_MAX) is connection
