"""After a failure, requests fail fast, except for one at a time that tries again."""

from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest
from django.db import Error, OperationalError
from psycopg.errors import LockNotAvailable
from pytest_django import Settings

from payments.models import Access
from payments.runtime.circuit_breaker import CircuitBreaker, CircuitOpen, DataBreakers, Guard
from tests.support.list_errors import timeout_error

pytestmark = pytest.mark.once

OUTAGE = OperationalError("the server does not respond")


@pytest.fixture
def at_once(settings: Settings) -> None:
    """Let a read try again at once after a failure."""
    settings.PAYMENTS_OUTAGE_OPEN_SECONDS = 0


def guard(breakers: DataBreakers, name: Hashable) -> Guard:
    return Guard(breakers, outages=name, timeouts=name)


def fail(breakers: DataBreakers, name: str, error: Error) -> None:
    with pytest.raises(type(error)), guard(breakers, name):
        raise error


def test_closed_circuit_breaker_admits_everything() -> None:
    breaker = CircuitBreaker("it")

    assert [breaker.admits(), breaker.admits()] == [True, True]


def test_open_circuit_breaker_admits_one_trial_at_a_time() -> None:
    breaker = CircuitBreaker("it")

    breaker.open(OUTAGE, seconds=60)
    assert (breaker.is_open, breaker.admits()) == (True, False)

    breaker.open(OUTAGE, seconds=0)
    assert (breaker.admits(), breaker.admits()) == (True, False)

    breaker.close()
    assert (breaker.is_open, breaker.admits(), breaker.admits()) == (False, True, True)


def test_one_of_two_requests_at_once_tries_again(settings: Settings) -> None:
    both = Barrier(2, timeout=0.2)

    class SlowlyAdded(float):
        def __radd__(self, other: float) -> float:
            """Let both threads add the setting at once, unless one waits for the other."""
            with suppress(BrokenBarrierError):
                both.wait()
            return other + float(self)

    settings.PAYMENTS_REQUEST_SECONDS_MAX = SlowlyAdded(60)
    breaker = CircuitBreaker("it")
    breaker.open(OUTAGE, seconds=0)

    with ThreadPoolExecutor(2) as pool:
        admitted = list(pool.map(lambda _: breaker.admits(), range(2)))

    assert sorted(admitted) == [False, True]


def test_trial_without_a_result_admits_another_one_later(settings: Settings) -> None:
    """Its thread may have ended with an error that says nothing about the server."""
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0
    breaker = CircuitBreaker("it")
    breaker.open(OUTAGE, seconds=0)
    breaker.admits()

    assert breaker.admits()


@pytest.mark.usefixtures("failing_fast")
def test_log_says_when_data_fails_and_when_it_responds_again(caplog: pytest.LogCaptureFixture, at_once: None) -> None:
    breakers: DataBreakers = {}
    for _ in range(2):
        with pytest.raises(OperationalError), guard(breakers, Access(7, "live")):
            raise OUTAGE
    with guard(breakers, Access(7, "live")):
        pass

    assert caplog.messages == [
        "Circuit breaker of organization 7 (live) opened: the server does not respond",
        "Circuit breaker of organization 7 (live) closed.",
    ]


def test_reads_of_the_same_data_fail_fast_after_an_outage(failing_fast: None) -> None:
    breakers: DataBreakers = {}
    fail(breakers, "a", OUTAGE)

    with pytest.raises(CircuitOpen), guard(breakers, "a"):
        raise AssertionError("unreachable")
    with guard(breakers, "b"):
        pass


@pytest.mark.usefixtures("failing_fast", "at_once")
def test_one_read_at_a_time_tries_again() -> None:
    breakers: DataBreakers = {}
    fail(breakers, "a", OUTAGE)

    with guard(breakers, "a"), pytest.raises(CircuitOpen), guard(breakers, "a"):
        raise AssertionError("unreachable")
    with guard(breakers, "a"), guard(breakers, "a"):
        pass

    assert breakers == {}


@pytest.mark.usefixtures("failing_fast")
def test_failed_trial_continues_the_outage(settings: Settings) -> None:
    breakers: DataBreakers = {}
    settings.PAYMENTS_OUTAGE_OPEN_SECONDS = 0
    fail(breakers, "a", OUTAGE)
    settings.PAYMENTS_OUTAGE_OPEN_SECONDS = 60
    fail(breakers, "a", OUTAGE)

    fail(breakers, "a", CircuitOpen())


@pytest.mark.usefixtures("failing_fast", "at_once")
@pytest.mark.parametrize("interruption", [KeyboardInterrupt, ValueError])
def test_interrupted_trial_lets_others_try(interruption: type[BaseException]) -> None:
    breakers: DataBreakers = {}
    fail(breakers, "a", OUTAGE)

    with pytest.raises(interruption), guard(breakers, "a"):
        raise interruption

    with guard(breakers, "a"):
        pass


@pytest.mark.usefixtures("failing_fast")
@pytest.mark.parametrize("error", [OUTAGE, timeout_error()], ids=["outage", "timeout"])
def test_read_whose_probe_succeeds_is_no_outage(error: Error) -> None:
    breakers: DataBreakers = {}
    with pytest.raises(OperationalError), Guard(breakers, outages="a", timeouts="a", probe=lambda: "a payment"):
        raise error

    assert breakers == {}


@pytest.mark.usefixtures("failing_fast")
def test_read_whose_probe_fails_is_an_outage() -> None:
    breakers: DataBreakers = {}

    def probe() -> None:
        raise OUTAGE

    with pytest.raises(OperationalError), Guard(breakers, outages="a", timeouts="a", probe=probe):
        raise timeout_error()

    assert list(breakers) == ["a"]


def test_fast_failure_is_no_outage() -> None:
    breakers: DataBreakers = {}
    fail(breakers, "a", OUTAGE)

    assert breakers == {}


@pytest.mark.usefixtures("failing_fast")
def test_lock_of_some_data_leaves_the_others_readable() -> None:
    """PostgreSQL ends a statement that waits too long for a lock."""
    breakers: DataBreakers = {}
    error = OperationalError()
    error.__cause__ = LockNotAvailable()
    with pytest.raises(OperationalError), Guard(breakers, outages="keys", timeouts="payments"):
        raise error
    with pytest.raises(OperationalError), Guard(breakers, outages="filtered payments", timeouts=None):
        raise error

    with guard(breakers, "keys"):
        pass
    assert list(breakers) == ["payments", "filtered payments"]


@pytest.mark.usefixtures("failing_fast")
def test_read_that_one_circuit_breaker_refuses_starts_no_trial_of_the_other(settings: Settings) -> None:
    breakers: DataBreakers = {}
    settings.PAYMENTS_OUTAGE_OPEN_SECONDS = 0
    fail(breakers, "payments", OUTAGE)
    settings.PAYMENTS_OUTAGE_OPEN_SECONDS = 60
    fail(breakers, "keys", OUTAGE)

    with pytest.raises(CircuitOpen), Guard(breakers, outages="keys", timeouts="payments"):
        raise AssertionError("unreachable")
    with guard(breakers, "payments"):
        pass


@pytest.mark.usefixtures("failing_fast")
@pytest.mark.parametrize("names", [("keys", "payments"), ("keys", None), (None, "payments"), ("keys", "keys")])
def test_outage_and_timeout_open_the_circuit_breakers_of_their_data(names: tuple[str | None, str | None]) -> None:
    for error, name in zip((OUTAGE, timeout_error()), names, strict=True):
        breakers: DataBreakers = {}
        with pytest.raises(OperationalError), Guard(breakers, outages=names[0], timeouts=names[1]):
            raise error

        assert list(breakers) == ([name] if name else [])


@pytest.mark.usefixtures("failing_fast")
@pytest.mark.parametrize("name", ["keys", "payments"])
def test_read_of_two_kinds_of_data_fails_fast_after_a_failure_of_one(name: str) -> None:
    breakers: DataBreakers = {}
    fail(breakers, name, OUTAGE)

    with pytest.raises(CircuitOpen), Guard(breakers, outages="keys", timeouts="payments"):
        raise AssertionError("unreachable")


@pytest.mark.usefixtures("failing_fast", "at_once")
def test_read_of_two_kinds_of_data_closes_both_circuit_breakers() -> None:
    breakers: DataBreakers = {}
    fail(breakers, "keys", OUTAGE)
    fail(breakers, "payments", OUTAGE)

    with Guard(breakers, outages="keys", timeouts="payments"):
        pass

    assert breakers == {}


@pytest.mark.usefixtures("failing_fast", "at_once")
def test_timeout_of_some_data_closes_the_circuit_breaker_of_the_others() -> None:
    """The server has responded."""
    breakers: DataBreakers = {}
    fail(breakers, "keys", OUTAGE)

    with pytest.raises(OperationalError), Guard(breakers, outages="keys", timeouts="payments"):
        raise timeout_error()

    assert list(breakers) == ["payments"]
