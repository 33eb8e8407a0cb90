"""A connection is there in time, or there is none."""

import socket
import threading
from typing import NoReturn

import pytest
from psycopg import OperationalError

from payments_site.postgresql.connecting import connected_within


def test_a_connection_in_time_is_returned() -> None:
    with socket.socket() as connection:
        assert connected_within(60, lambda: connection) is connection
        assert connection.fileno() >= 0


@pytest.mark.parametrize("kind", [OperationalError, TimeoutError, ValueError])
def test_a_failure_is_that_of_whoever_asked(kind: type[Exception]) -> None:
    def fail() -> NoReturn:
        raise kind("refused")

    with pytest.raises(kind, match="refused"):
        connected_within(60, fail)


def test_a_connection_that_comes_too_late_is_closed() -> None:
    connection, other_end = socket.socketpair()
    is_too_late = threading.Event()

    def come_late() -> socket.socket:
        is_too_late.wait()
        return connection

    with pytest.raises(OperationalError, match="in time"):
        connected_within(0.01, come_late)
    is_too_late.set()

    with other_end:
        other_end.settimeout(10)
        assert other_end.recv(1) == b""


def test_a_failure_that_comes_too_late_is_nobodys() -> None:
    """An exception that nobody caught in a thread would fail the test."""
    is_too_late = threading.Event()
    before = set(threading.enumerate())

    def fail_late() -> NoReturn:
        is_too_late.wait()
        raise OperationalError("refused")

    with pytest.raises(OperationalError, match="in time"):
        connected_within(0.01, fail_late)
    (thread,) = set(threading.enumerate()) - before
    is_too_late.set()
    thread.join()
