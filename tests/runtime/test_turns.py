"""With a near database, requests run one after the other. No request delays others for long."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from payments.runtime import turns as module
from payments.runtime.turns import COUNT_MAX, NEAR_SECONDS, Turns
from tests.support.waiting import wait_until

NEAR, FAR = NEAR_SECONDS / 2, NEAR_SECONDS * 2
TIMEOUT = 10


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    """Return turns with a near database. Requests wait for their turn longer than a test takes."""
    monkeypatch.setattr(module, "TURN_SECONDS_MAX", TIMEOUT)
    turns = Turns()
    turns.record(NEAR)
    return turns


@contextmanager
def request(turns: Turns) -> Iterator[None]:
    """Run the block as a request."""
    turns.begin()
    try:
        yield
    finally:
        turns.end()


@contextmanager
def another_request(turns: Turns) -> Iterator[threading.Event]:
    """Start a request in another thread. The event is set when the request runs."""
    runs = threading.Event()

    def run() -> None:
        with request(turns):
            runs.set()

    thread = threading.Thread(target=run)
    thread.start()
    yield runs
    thread.join(TIMEOUT)


def is_waiting(turns: Turns, requests: int) -> bool:
    return len(turns.queue) == requests


def runs_meanwhile(turns: Turns) -> bool:
    """Return whether another request runs before this one ends its turn."""
    with another_request(turns) as runs:
        meanwhile = runs.wait(0.2)
        turns.end()
        assert runs.wait(TIMEOUT)
    return meanwhile


def test_requests_run_one_after_the_other(turns: Turns) -> None:
    with request(turns):
        assert not runs_meanwhile(turns)


def test_turn_ends_with_an_error(turns: Turns) -> None:
    with pytest.raises(ZeroDivisionError), request(turns):
        raise ZeroDivisionError

    assert runs_meanwhile(turns)


def test_long_wait_ends_the_turn(turns: Turns) -> None:
    with request(turns), another_request(turns) as runs:
        turns.begin_wait(time.monotonic())
        assert runs.wait(TIMEOUT)


def test_turn_that_was_ended_is_not_ended_again(turns: Turns) -> None:
    """The turn of the next request continues when the first one has its answer."""
    begun, can_end = threading.Event(), threading.Event()

    def run() -> None:
        with request(turns):
            begun.set()
            can_end.wait(TIMEOUT)

    next_request = threading.Thread(target=run)
    with request(turns):
        next_request.start()
        turns.begin_wait(time.monotonic())
        assert begun.wait(TIMEOUT)
        turns.end_wait()
    assert turns.owner == next_request.ident
    can_end.set()
    next_request.join(TIMEOUT)

    assert turns.owner is None


def test_short_wait_keeps_the_turn(turns: Turns) -> None:
    with request(turns):
        turns.begin_wait(time.monotonic())
        turns.end_wait()
        assert not runs_meanwhile(turns)


def test_request_runs_without_a_turn_after_a_long_wait_for_it(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURN_SECONDS_MAX", 0.01)

    with request(turns):
        assert runs_meanwhile(turns)
        assert turns.owner is None


def test_request_without_a_turn_does_not_end_that_of_another(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    with request(turns):
        monkeypatch.setattr(module, "TURN_SECONDS_MAX", 0.01)
        with another_request(turns) as runs:
            assert runs.wait(TIMEOUT)
        assert turns.owner == threading.get_ident()


def test_requests_with_a_far_database_run_at_the_same_time() -> None:
    turns = Turns()
    turns.record(FAR)

    with request(turns):
        assert runs_meanwhile(turns)


def test_requests_before_the_first_round_trip_run_at_the_same_time() -> None:
    turns = Turns()

    with request(turns):
        assert runs_meanwhile(turns)


def test_busy_database_is_still_near(turns: Turns) -> None:
    for _ in range(COUNT_MAX - 1):
        turns.record(FAR)

    assert turns.are_useful


def test_database_that_has_moved_away_is_far(turns: Turns) -> None:
    for _ in range(2 * COUNT_MAX):
        turns.record(FAR)

    assert not turns.are_useful


def test_turns_are_in_the_order_of_the_requests(turns: Turns) -> None:
    order: list[int] = []

    def run(number: int) -> None:
        with request(turns):
            order.append(number)

    with request(turns):
        threads = [threading.Thread(target=run, args=[number]) for number in range(5)]
        for number, thread in enumerate(threads):
            thread.start()
            wait_until(partial(is_waiting, turns, number + 1))
    for thread in threads:
        thread.join(TIMEOUT)

    assert order == list(range(5))


def test_request_that_no_longer_waits_gets_no_turn(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    with request(turns):
        monkeypatch.setattr(module, "TURN_SECONDS_MAX", 0.01)
        assert runs_meanwhile(turns)

    assert not turns.queue
    assert turns.owner is None
