"""A connection is there in time, or there is none yet."""

import socket
import threading
from typing import NoReturn

import pytest
from psycopg import OperationalError

from payments.database.postgresql.connecting import Connecting, NoConnectionYet


def test_a_connection_in_time_is_returned() -> None:
    with socket.socket() as connection:
        assert Connecting(lambda: connection).within(60) is connection


@pytest.mark.parametrize("kind", [OperationalError, TimeoutError, ValueError])
def test_a_failure_is_that_of_whoever_asked(kind: type[Exception]) -> None:
    def fail() -> NoReturn:
        raise kind("refused")

    connecting: Connecting[socket.socket] = Connecting(fail)

    with pytest.raises(kind, match="refused"):
        connecting.within(60)
    assert not connecting.is_promising


def test_a_connection_that_comes_too_late_is_there_for_who_comes_later() -> None:
    connection, other_end = socket.socketpair()
    is_late_enough = threading.Event()

    def come_late() -> socket.socket:
        is_late_enough.wait()
        return connection

    connecting = Connecting(come_late)
    with connection, other_end:
        with pytest.raises(NoConnectionYet, match="in time"):
            connecting.within(0.01)
        assert connecting.is_promising
        is_late_enough.set()

        assert connecting.within(60) is connection


def test_a_connection_that_has_ended_before_anybody_came_is_not_waited_for() -> None:
    connection, other_end = socket.socketpair()
    with connection:
        connecting = Connecting(lambda: connection)
        connecting.within(60)
        assert connecting.is_promising

        other_end.close()

        assert not connecting.is_promising
