"""A request occupies a slot while it runs, and gives it back while it waits."""

from collections.abc import Iterator

import pytest
from django.db import connections

from payments.runtime.gate import Gate
from payments.runtime.process import process
from payments.runtime.sessions import Sessions
from payments.runtime.slots import Slot, current, paused
from payments.runtime.turns import NEAR_SECONDS, Turns

pytestmark = pytest.mark.django_db(transaction=True)

CLIENT = "Bearer key"


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sessions]:
    """Yield sessions of a process with one place and a near database. Later, this thread has its own connections."""
    turns = Turns()
    turns.record(NEAR_SECONDS / 2)
    monkeypatch.setattr(process, "gate", Gate(1))
    monkeypatch.setattr(process, "turns", turns)
    own, deadline = {alias: connections[alias] for alias in connections}, process.deadlines.database
    sessions = Sessions()
    yield sessions
    for session in sessions.idle:
        session.close()
    for alias, opened in own.items():
        connections[alias] = opened
    process.deadlines.database = deadline


def is_free(sessions: Sessions) -> bool:
    """Return whether nothing of the slot is occupied."""
    free = process.gate.free == 1
    assert (process.turns.owner is None) == free
    assert bool(sessions.idle) == free
    assert bool(process.thread_connections.current) != free
    return free


def test_slot_is_occupied_while_the_request_runs(sessions: Sessions) -> None:
    with Slot(sessions, CLIENT, takes_turn=True):
        assert not is_free(sessions)
    assert is_free(sessions)


def test_slot_is_free_after_an_error(sessions: Sessions) -> None:
    with pytest.raises(ZeroDivisionError), Slot(sessions, CLIENT, takes_turn=True):
        raise ZeroDivisionError

    assert is_free(sessions)
    assert current.get() is None


def test_request_without_a_turn_occupies_the_rest(sessions: Sessions) -> None:
    with Slot(sessions, CLIENT, takes_turn=False):
        assert process.gate.free == 0
        assert process.turns.owner is None


def test_slot_is_free_while_the_request_waits(sessions: Sessions) -> None:
    with Slot(sessions, CLIENT, takes_turn=True):
        with paused():
            assert is_free(sessions)
        assert process.gate.free == 0
        assert process.thread_connections.current
        assert process.deadlines.database.is_active
        assert process.turns.owner is None  # what the request waited for may take long
    assert is_free(sessions)


def test_slot_is_occupied_again_after_an_error(sessions: Sessions) -> None:
    with Slot(sessions, CLIENT, takes_turn=True):
        with pytest.raises(ZeroDivisionError), paused():
            raise ZeroDivisionError
        assert process.gate.free == 0
    assert is_free(sessions)


def test_work_without_a_slot_can_wait(sessions: Sessions) -> None:
    with paused():
        assert process.gate.free == 1


def test_failed_session_leaves_the_slot_free(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError

    monkeypatch.setattr(sessions, "take", fail)

    with pytest.raises(OSError), Slot(sessions, CLIENT, takes_turn=True):  # noqa: PT011  it has no message
        raise AssertionError("unreachable")

    assert (process.gate.free, process.turns.owner) == (1, None)
