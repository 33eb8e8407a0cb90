"""The watchdog aborts what exceeds its deadline, and nothing else."""

import gc
import sys
import threading
import time
from contextlib import suppress

import pytest

from payments.runtime.deadlines import Abortable, Deadline, ThreadDeadlines, Watchdog
from tests.support.commands import run_command
from tests.support.processes import ROOT


class RecordingConnection(Abortable):
    """Records whether it was aborted and closed."""

    def __init__(self, *, failover_seconds: float = 0) -> None:
        self.failover_seconds = failover_seconds
        self.waiting = True
        self.aborted = threading.Event()
        self.is_closed = False

    @property
    def is_waiting(self) -> bool:
        return self.waiting

    def abort(self) -> None:
        self.aborted.set()

    def close(self) -> None:
        self.is_closed = True


def deadline_of(connection: Abortable, watchdog: Watchdog, *, seconds_max: float) -> Deadline:
    deadline = watchdog.new_deadline(seconds_max=seconds_max)
    deadline.register(connection)
    return deadline


def test_connection_is_aborted_after_its_deadline_and_not_before() -> None:
    watchdog = Watchdog()
    late, early = RecordingConnection(), RecordingConnection()

    with deadline_of(late, watchdog, seconds_max=0), deadline_of(early, watchdog, seconds_max=60):
        assert late.aborted.wait(timeout=10)

    assert (late.aborted.is_set(), early.aborted.is_set()) == (True, False)


def test_finished_block_is_not_aborted() -> None:
    connection = RecordingConnection()
    deadline = deadline_of(connection, Watchdog(), seconds_max=60)

    with deadline:
        pass
    deadline.abort_if_expired(time.monotonic() + 120)

    assert not deadline.is_active
    assert not connection.aborted.is_set()


def test_pause_postpones_the_deadline() -> None:
    deadline = Deadline(Watchdog(), 60)

    with deadline:
        earlier = deadline.ends_at
        with deadline.paused():
            time.sleep(0.01)
        later = deadline.ends_at

    assert earlier is not None
    assert later is not None
    assert later - earlier > 0.009


def test_nothing_is_aborted_during_a_pause() -> None:
    deadline = Deadline(Watchdog(), 60)  # without a watchdog that aborts as well
    connection = RecordingConnection()
    deadline.register(connection)
    expired = time.monotonic() + 120

    with deadline:
        with deadline.paused():
            deadline.abort_if_expired(expired)
        was_aborted = connection.aborted.is_set()
        deadline.abort_if_expired(expired)

    assert (was_aborted, connection.aborted.is_set()) == (False, True)


def test_pause_outside_of_a_block_starts_no_deadline() -> None:
    deadline = Deadline(Watchdog(), 60)

    with deadline.paused():
        assert not deadline.is_active
    assert not deadline.is_active


class RecordingLock:
    """A lock that records whether a deadline is active when the lock is taken and when it is released."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.lock = threading.Lock()
        self.was_active: list[bool] = []

    def __enter__(self) -> None:
        self.lock.acquire()
        self.was_active.append(self.deadline.is_active)

    def __exit__(self, *_error: object) -> None:
        self.was_active.append(self.deadline.is_active)
        self.lock.release()


@pytest.mark.parametrize("has_aborted", [False, True])
@pytest.mark.parametrize("error", [None, ValueError])
def test_block_ends_only_while_its_lock_is_held(error: type[Exception] | None, has_aborted: bool) -> None:
    """Otherwise an abort in progress, which holds the lock, could end the next request's connection."""
    deadline = Deadline(Watchdog(), 60)  # without a watchdog that takes the lock as well
    lock = RecordingLock(deadline)

    with suppress(ValueError), deadline:
        deadline.has_aborted = has_aborted
        deadline.lock = lock  # type: ignore[assignment]
        if error:
            raise error

    assert lock.was_active == [True, False]


class LockObserver(Abortable):
    """Records whether the lock of its deadline is held when it is aborted."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.was_locked: list[bool] = []

    def abort(self) -> None:
        self.was_locked.append(self.deadline.lock.locked())


def test_abort_holds_the_lock() -> None:
    deadline = Deadline(Watchdog(), 60)
    connection = LockObserver(deadline)
    deadline.register(connection)

    with deadline:
        deadline.abort_if_expired(time.monotonic() + 120)

    assert connection.was_locked == [True]


def test_registering_a_connection_closes_the_previous_one() -> None:
    first, second = RecordingConnection(), RecordingConnection()

    deadline = deadline_of(first, Watchdog(), seconds_max=1)
    deadline.register(second)

    assert (first.is_closed, second.is_closed) == (True, False)


def test_unregistering_a_connection_closes_it() -> None:
    connection = RecordingConnection()
    deadline = deadline_of(connection, Watchdog(), seconds_max=1)

    deadline.unregister()
    deadline.unregister()

    assert connection.is_closed
    assert deadline.connections == {}


FORKING = """
import os
from payments.runtime.process import process

def is_watched():
    with process.deadlines.database:
        return process.watchdog.thread.is_alive()

assert is_watched()
child = os.fork()
if child == 0:
    os._exit(0 if is_watched() else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
"""


def test_forked_process_starts_its_own_watchdog() -> None:
    """A server may load the application before it forks its workers."""
    process = run_command([sys.executable, "-c", FORKING], cwd=ROOT)

    assert process.returncode == 0, process.stderr


def test_deadlines_of_ended_threads_are_freed() -> None:
    watchdog = Watchdog()
    deadlines = ThreadDeadlines(watchdog)
    before = len(watchdog.deadlines)

    for _ in range(10):
        thread = threading.Thread(target=lambda: deadlines.database)
        thread.start()
        thread.join()
    gc.collect()

    assert len(watchdog.deadlines) == before


class BrokenConnection(RecordingConnection):
    """Fails when it is aborted."""

    def abort(self) -> None:
        super().abort()
        raise ValueError("cannot abort")


def test_failing_abort_does_not_stop_the_watchdog() -> None:
    watchdog = Watchdog()
    broken, healthy = BrokenConnection(), RecordingConnection()

    with deadline_of(broken, watchdog, seconds_max=0):
        assert broken.aborted.wait(timeout=10)
    with deadline_of(healthy, watchdog, seconds_max=0):
        assert healthy.aborted.wait(timeout=10)


def test_time_is_left_for_failover_once() -> None:
    deadline = Watchdog().new_deadline(seconds_max=60)
    first, second = (RecordingConnection(failover_seconds=1) for _ in range(2))
    deadline.register(first, name="first")
    deadline.register(second, name="second")
    second.waiting = False

    aborted = []
    with deadline:
        ends_at = time.monotonic() + deadline.remaining_seconds
        for seconds_before_deadline in (1.5, 0.5, 0.4, -0.1):
            deadline.abort_if_expired(ends_at - seconds_before_deadline)
            aborted.append((first.aborted.is_set(), second.aborted.is_set()))
            first.waiting, second.waiting = not first.aborted.is_set(), first.aborted.is_set()

    assert aborted == [(False, False), (True, False), (True, False), (True, True)]
