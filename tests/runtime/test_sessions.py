"""The threads of a worker share database sessions."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections

from payments.database.runners import open_connection
from payments.runtime.process import process
from payments.runtime.sessions import IDLE_SECONDS_MAX, Session, Sessions

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def in_use(session: Session) -> Iterator[None]:
    session.begin()
    try:
        yield
    finally:
        session.end()


def in_thread(work: Callable[[], Any]) -> Any:
    """Return the result of `work`, which runs in another thread."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    """Yield sessions. Afterwards, this thread has its own connections again."""
    own, deadline = {alias: connections[alias] for alias in connections}, process.deadlines.database
    sessions = Sessions()
    yield sessions
    for session in [*sessions.idle]:
        with in_use(session):
            connections.close_all()
    for alias, opened in own.items():
        connections[alias] = opened
    process.deadlines.database = deadline


def request(sessions: Sessions) -> Any:
    """Read the database as a request does, and return the driver's connection."""
    with in_use(sessions.take()), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
        return connection.connection


def test_requests_of_all_threads_use_the_same_connection(sessions: Sessions) -> None:
    used = [in_thread(lambda: request(sessions)) for _ in range(3)]

    assert used == [used[0]] * 3
    assert len(sessions.idle) == 1


def test_requests_at_the_same_time_use_different_connections(sessions: Sessions) -> None:
    with in_use(sessions.take()):
        connection.ensure_connection()
        first = connection.connection
        second = in_thread(lambda: request(sessions))

    assert second is not first
    assert len(sessions.idle) == 2


def test_the_session_that_was_used_last_is_used_next(sessions: Sessions) -> None:
    with in_use(sessions.take()):
        in_thread(lambda: request(sessions))
        connection.ensure_connection()
        last = connection.connection

    assert in_thread(lambda: request(sessions)) is last


def test_orm_uses_the_connection_of_each_session(sessions: Sessions) -> None:
    with in_use(sessions.take()):
        in_thread(lambda: request(sessions))
    one, other = sessions.idle

    for session in (one, other, one):
        with in_use(session):
            assert connections["default"] is session.connections["default"] is open_connection("default")


def test_connections_belong_to_the_session_only_while_it_is_used(sessions: Sessions) -> None:
    with in_use(sessions.take()):
        assert process.thread_connections.current
        assert not in_thread(lambda: process.thread_connections.current)

    assert not process.thread_connections.current


def test_deadline_belongs_to_the_session(sessions: Sessions) -> None:
    were_active: list[bool] = []
    with in_use(sessions.take()):
        deadline = process.deadlines.database
        were_active.append(deadline.is_active)
        connection.ensure_connection()
        assert connection.alias in deadline.connections
    were_active.append(deadline.is_active)

    assert were_active == [True, False]
    assert [session.deadline for session in sessions.idle] == [deadline]


def test_connections_close_after_a_long_time_without_requests(sessions: Sessions) -> None:
    with in_use(sessions.take()):
        in_thread(lambda: request(sessions))
        connection.ensure_connection()
    unused, recent = sessions.idle
    unused.used_at -= IDLE_SECONDS_MAX

    in_thread(lambda: request(sessions))

    assert sessions.idle == [recent]
    assert [opened.connection for opened in unused.connections.values()] == [None] * len(unused.connections)


def test_request_after_a_long_time_gets_a_new_connection(sessions: Sessions) -> None:
    first = request(sessions)
    sessions.idle[0].used_at -= IDLE_SECONDS_MAX

    assert request(sessions) is not first
