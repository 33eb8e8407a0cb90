"""A share limits how many threads do the same kind of work."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest

from payments.runtime.shares import NoPlace, Share
from tests.support.threads import most_at_once
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


def wait(share: Share) -> None:
    share.wait("a", seconds_max=60)


def test_waiting_thread_gets_the_place_that_becomes_free() -> None:
    share = Share(places_max=1, waiting_max=1)
    with ThreadPoolExecutor() as pool:
        with share.place("a"):
            waiting = pool.submit(wait, share)
            wait_until(lambda: "a" in share.waiting)
            assert not waiting.done()

            with pytest.raises(NoPlace):  # another thread waits already
                wait(share)
        waiting.result(timeout=60)

        assert not share.acquire("a")
        assert not share.waiting
    share.release("a")
    assert not share.running


def test_thread_that_has_waited_longest_gets_the_place() -> None:
    """A thread that has not waited does not overtake those that wait."""
    share = Share(places_max=1, waiting_max=3)
    order: list[int] = []

    def work(number: int) -> None:
        wait(share)
        order.append(number)
        share.release("a")

    with ThreadPoolExecutor() as pool:
        assert share.acquire("a")
        for number in range(3):
            pool.submit(work, number)
            wait_until(lambda: len(share.waiting["a"]) == number + 1)  # noqa: B023  ends before the next number
        share.release("a")

    assert order == [0, 1, 2]


def test_free_place_needs_no_waiting() -> None:
    share = Share(places_max=1)

    share.wait("a", seconds_max=0)

    assert share.running == {"a": 1}


@pytest.mark.parametrize(("waiting_max", "seconds_max"), [(1, 0.01), (0, 60)])
def test_place_that_does_not_become_free_is_refused(waiting_max: int, seconds_max: float) -> None:
    share = Share(places_max=1, waiting_max=waiting_max)
    with share.place("a"):
        with pytest.raises(NoPlace):
            share.wait("a", seconds_max=seconds_max)

        assert not share.waiting
        assert share.running == {"a": 1}


def test_many_threads_never_exceed_the_share() -> None:
    share = Share(places_max=3, waiting_max=100)

    most = most_at_once([(partial(wait, share), partial(share.release, "a"))] * 10)

    assert most == 3
    assert (share.running, share.waiting) == ({}, {})


def test_threads_that_give_up_lose_no_place() -> None:
    """A thread may get its place just when it gives up."""
    share = Share(places_max=1, waiting_max=100)
    outcomes: Counter[bool] = Counter()

    def work() -> None:
        for _ in range(100):
            try:
                share.wait("a", seconds_max=0.0005)
            except NoPlace:
                outcomes[False] += 1
            else:
                threading.Event().wait(0.0003)
                share.release("a")
                outcomes[True] += 1

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work) for _ in range(8)]:
            future.result(timeout=60)

    assert outcomes[True]
    assert outcomes[False]
    assert (share.running, share.waiting) == ({}, {})
