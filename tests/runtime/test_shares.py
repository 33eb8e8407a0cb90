"""A share limits how many threads do the same kind of work."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from payments.runtime.shares import NoPlace, Share
from tests.support.waiting import wait_until


def occupy(share: Share, name: str, stack: ExitStack, *, times: int) -> None:
    for _ in range(times):
        stack.enter_context(share.place(name))


def test_places_are_counted_by_name() -> None:
    share = Share(places_max=2)
    with ExitStack() as stack:
        occupy(share, "a", stack, times=2)
        occupy(share, "b", stack, times=2)

        with pytest.raises(NoPlace), share.place("a"):
            raise AssertionError("unreachable")


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_place_is_free_after_the_block(error: type[BaseException] | None) -> None:
    share = Share(places_max=1)
    for _ in range(2):
        with ExitStack() as stack:
            if error:
                stack.enter_context(pytest.raises(error))
            stack.enter_context(share.place("a"))
            if error:
                raise error

    assert not share.running


def enter(share: Share, entered: threading.Event) -> None:
    with share.place("a"):
        entered.set()


def test_waiting_thread_gets_the_place_that_becomes_free() -> None:
    share = Share(places_max=1, waiting_max=1, wait_seconds=60)
    entered = threading.Event()
    with ThreadPoolExecutor() as pool:
        with share.place("a"):
            waiting = pool.submit(enter, share, entered)
            wait_until(lambda: share.waiting["a"] == 1)
            assert not entered.is_set()

            with pytest.raises(NoPlace), share.place("a"):  # another thread waits already
                raise AssertionError("unreachable")
        waiting.result(timeout=60)

    assert entered.is_set()
    assert not share.waiting


@pytest.mark.parametrize(("wait_seconds", "can_wait"), [(0.01, True), (60, False)])
def test_place_that_does_not_become_free_is_refused(wait_seconds: float, can_wait: bool) -> None:
    share = Share(places_max=1, waiting_max=1, wait_seconds=wait_seconds)
    with share.place("a"):
        with pytest.raises(NoPlace), share.place("a", can_wait=can_wait):
            raise AssertionError("unreachable")

        assert not share.waiting


def test_many_threads_never_exceed_the_share() -> None:
    share = Share(places_max=3, waiting_max=100, wait_seconds=60)
    lock = threading.Lock()
    running, most = 0, 0

    def work() -> None:
        nonlocal running, most
        for _ in range(50):
            with share.place("a"):
                with lock:
                    running += 1
                    most = max(most, running)
                threading.Event().wait(0.0001)
                with lock:
                    running -= 1

    with ThreadPoolExecutor(10) as pool:
        for future in [pool.submit(work) for _ in range(10)]:
            future.result(timeout=60)

    assert most == 3
    assert (share.running, share.waiting) == ({}, {})
