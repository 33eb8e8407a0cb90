"""After a failure, requests fail fast, except for one at a time that tries again."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest
from django.db import Error, OperationalError
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


def fail(breakers: DataBreakers, name: str, error: Error, *, timeouts_count: bool = True) -> None:
    with pytest.raises(type(error)), Guard(breakers, name, timeouts_count=timeouts_count):
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
        with pytest.raises(OperationalError), Guard(breakers, Access(7, "live")):
            raise OUTAGE
    with Guard(breakers, Access(7, "live")):
        pass

    assert caplog.messages == [
        "Circuit breaker of organization 7 (live) opened: the server does not respond",
        "Circuit breaker of organization 7 (live) closed.",
    ]


def test_reads_of_the_same_data_fail_fast_after_an_outage(failing_fast: None) -> None:
    breakers: DataBreakers = {}
    fail(breakers, "a", OUTAGE)

    with pytest.raises(CircuitOpen), Guard(breakers, "a"):
        raise AssertionError("unreachable")
    with Guard(breakers, "b"):
        pass


@pytest.mark.usefixtures("failing_fast", "at_once")
def test_one_read_at_a_time_tries_again() -> None:
    breakers: DataBreakers = {}
    fail(breakers, "a", OUTAGE)

    with Guard(breakers, "a"), pytest.raises(CircuitOpen), Guard(breakers, "a"):
        raise AssertionError("unreachable")
    with Guard(breakers, "a"), Guard(breakers, "a"):
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

    with pytest.raises(interruption), Guard(breakers, "a"):
        raise interruption

    with Guard(breakers, "a"):
        pass


def test_fast_failure_is_no_outage() -> None:
    breakers: DataBreakers = {}
    fail(breakers, "a", OUTAGE)

    assert breakers == {}


@pytest.mark.parametrize(("timeouts_count", "names"), [(True, ["a"]), (False, [])])
def test_timeout_of_a_statement_can_be_an_outage(failing_fast: None, timeouts_count: bool, names: list[str]) -> None:
    breakers: DataBreakers = {}
    fail(breakers, "a", timeout_error(), timeouts_count=timeouts_count)

    assert list(breakers) == names


def test_error_that_is_not_raised_can_be_an_outage(failing_fast: None) -> None:
    breakers: DataBreakers = {}
    with Guard(breakers, "a") as guard:
        guard.error = OUTAGE

    assert list(breakers) == ["a"]
