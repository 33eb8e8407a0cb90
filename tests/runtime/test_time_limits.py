"""A deadline limits each wait of its thread, and only within its block."""

import threading
import time
from contextlib import suppress

import pytest
from psycopg import OperationalError
from pytest_django import Settings

from payments.runtime import time_limits
from payments.runtime.time_limits import Deadline
from tests.support.replica import database_as_replica

pytestmark = pytest.mark.once


def wait_seconds(deadline: Deadline) -> float:
    seconds = deadline.wait_seconds
    assert seconds is not None
    return seconds


def test_wait_is_limited_only_within_the_block(settings: Settings) -> None:
    deadline = Deadline()

    before = deadline.wait_seconds
    with deadline:
        within = wait_seconds(deadline)
    after = deadline.wait_seconds

    assert (before, after) == (None, None)
    assert time_limits.LATE_STATEMENT.seconds < within <= settings.PAYMENTS_REQUEST_SECONDS_MAX


def test_statement_after_the_deadline_has_a_short_time(settings: Settings) -> None:
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 2.5
    deadline = Deadline()

    with deadline, deadline.shortened(0):
        assert wait_seconds(deadline) == 0.4


def test_pause_postpones_the_deadline() -> None:
    deadline = Deadline()

    with deadline:
        earlier = deadline.ends_at
        with deadline.paused():
            time.sleep(0.01)
        later = deadline.ends_at

    assert earlier is not None
    assert later is not None
    assert later - earlier > 0.009


def test_no_deadline_is_active_during_a_pause() -> None:
    deadline = Deadline()

    with deadline, deadline.paused():
        assert (deadline.is_active, deadline.wait_seconds) == (False, None)


def test_pause_outside_of_a_block_starts_no_deadline() -> None:
    deadline = Deadline()

    with deadline.paused():
        assert not deadline.is_active
    assert not deadline.is_active


@pytest.mark.parametrize(("seconds", "expected"), [(10, 10), (90, 60)])
def test_shortened_deadline_is_never_later(seconds: float, expected: float, settings: Settings) -> None:
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 60
    deadline = Deadline()

    with deadline:
        ends_at = deadline.ends_at
        with deadline.shortened(seconds):
            within = deadline.remaining_seconds
        after = deadline.ends_at

    assert expected - 5 < within <= expected
    assert after == ends_at


def test_shortened_deadline_ends_with_its_block() -> None:
    deadline = Deadline()

    with suppress(ValueError), deadline.shortened(0):
        assert deadline.remaining_seconds <= 0
        raise ValueError

    assert not deadline.is_active


def test_first_wait_leaves_time_for_another_server(settings: Settings) -> None:
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 1000
    deadline = Deadline()

    reserved = []
    for _ in range(2):
        with database_as_replica(), deadline:
            reserved.append(round(deadline.remaining_seconds - wait_seconds(deadline)))
            with pytest.raises(OperationalError, match="before the deadline"):
                deadline.fail_wait()
            reserved.append(round(deadline.remaining_seconds - wait_seconds(deadline)))

    assert reserved == [160, 0, 160, 0]


def test_threads_have_their_own_deadlines() -> None:
    deadline = Deadline()
    were_active: list[bool] = []

    with deadline:
        thread = threading.Thread(target=lambda: were_active.append(deadline.is_active))
        thread.start()
        thread.join()

    assert were_active == [False]
