"""After a slow outage, one thread at a time tries again and the others fail fast."""

import pytest
from django.db import Error, OperationalError

from payments.runtime import outages
from payments.runtime.outages import Guard, Outages, RecentOutage
from tests.support.list_errors import timeout_error

OUTAGE = OperationalError("the server does not respond")


@pytest.fixture
def any_failure_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "SLOW_SECONDS", 0)


def fail(current: Outages, name: str, error: Error, *, timeouts_count: bool = True) -> None:
    with pytest.raises(type(error)), Guard(current, name, timeouts_count=timeouts_count):
        raise error


def test_reads_of_the_same_data_fail_fast_after_an_outage(any_failure_is_slow: None) -> None:
    current = Outages()
    fail(current, "a", OUTAGE)

    with pytest.raises(RecentOutage), Guard(current, "a"):
        raise AssertionError("unreachable")
    with Guard(current, "b"):
        pass


@pytest.mark.usefixtures("any_failure_is_slow")
def test_one_read_at_a_time_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "RETRY_SECONDS", 0)
    current = Outages()
    fail(current, "a", OUTAGE)

    with Guard(current, "a"), pytest.raises(RecentOutage), Guard(current, "a"):
        raise AssertionError("unreachable")
    with Guard(current, "a"), Guard(current, "a"):
        pass


@pytest.mark.usefixtures("any_failure_is_slow")
def test_failed_retry_continues_the_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    current = Outages()
    monkeypatch.setattr(outages, "RETRY_SECONDS", 0)
    fail(current, "a", OUTAGE)
    monkeypatch.setattr(outages, "RETRY_SECONDS", 60)
    fail(current, "a", OUTAGE)

    fail(current, "a", RecentOutage())


@pytest.mark.usefixtures("any_failure_is_slow")
@pytest.mark.parametrize("interruption", [KeyboardInterrupt, ValueError])
def test_interrupted_retry_lets_others_try(monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]) -> None:
    monkeypatch.setattr(outages, "RETRY_SECONDS", 0)
    current = Outages()
    fail(current, "a", OUTAGE)

    with pytest.raises(interruption), Guard(current, "a"):
        raise interruption

    with Guard(current, "a"):
        pass


def test_fast_failure_is_no_outage() -> None:
    current = Outages()
    fail(current, "a", OUTAGE)

    assert current.by_name == {}


@pytest.mark.parametrize(("timeouts_count", "names"), [(True, ["a"]), (False, [])])
def test_timeout_of_a_statement_can_be_an_outage(
    any_failure_is_slow: None, timeouts_count: bool, names: list[str]
) -> None:
    current = Outages()
    fail(current, "a", timeout_error(), timeouts_count=timeouts_count)

    assert list(current.by_name) == names


def test_error_that_is_not_raised_can_be_an_outage(any_failure_is_slow: None) -> None:
    current = Outages()
    with Guard(current, "a") as guard:
        guard.error = OUTAGE

    assert list(current.by_name) == ["a"]
