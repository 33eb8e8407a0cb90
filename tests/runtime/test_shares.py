"""Shares limit how many threads slow work uses, so that fast requests find one."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest
from pytest_django import Settings

from payments.runtime.shares import NoPlace, NoThread, Shares
from tests.support.waiting import SECONDS_MAX, wait_until

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def short_waits(settings: Settings) -> None:
    """Let a read with filters give up soon; the fixture `pool` lets it wait."""
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0.05


def may_filter(shares: Shares, client: str) -> bool:
    """Return whether a client may read with filters now."""
    try:
        with shares.filters(client):
            return True
    except NoPlace:
        return False


def may_open_a_page(shares: Shares, client: str = "user") -> bool:
    try:
        with shares.staff_pages(client):
            return True
    except NoPlace:
        return False


def read(shares: Shares) -> None:
    with shares.filters("a"):
        pass


def open_public_page(shares: Shares, client: str, served: list[str] | None = None) -> None:
    with shares.public_pages(client):
        if served is not None:
            served.append(client)


@pytest.fixture
def pool(settings: Settings) -> Iterator[ThreadPoolExecutor]:
    """Other threads, which wait as long as a test may take."""
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 300
    with ThreadPoolExecutor() as executor:
        yield executor


def start_waiting(shares: Shares, pool: ThreadPoolExecutor) -> Future[None]:
    """Start a read of the client `a` in another thread, and return it when it waits."""
    waiting = pool.submit(read, shares)
    wait_until(lambda: (("filters", "a"), "a") in shares.waiting)
    return waiting


def test_work_that_has_ended_occupies_nothing() -> None:
    shares = Shares(4)

    for error in (ValueError, KeyboardInterrupt):
        pages = (shares.staff_pages("a"), shares.public_pages("a"))
        for share in (shares.filters("a"), *pages, shares.exports(), shares.logins("192.0.2.1")):
            with pytest.raises(error), share:
                raise error

    assert (shares.occupied, shares.running, shares.waiting) == (0, {}, {})


@pytest.mark.parametrize(("threads", "at_once"), [(1, 1), (2, 1), (3, 2), (4, 2), (8, 4), (100, 50)])
def test_client_filters_in_half_of_the_threads_and_at_least_in_two(threads: int, at_once: int) -> None:
    shares = Shares(threads)
    with ExitStack() as stack:
        for _ in range(at_once):
            stack.enter_context(shares.filters("a"))

        with pytest.raises(NoPlace), shares.filters("a"):
            raise AssertionError("unreachable")


@pytest.mark.parametrize(
    ("threads", "staff", "public"), [(1, 1, 1), (2, 1, 1), (3, 1, 1), (5, 2, 1), (8, 4, 2), (100, 50, 25)]
)
def test_staff_use_half_of_the_threads_and_strangers_a_quarter(threads: int, staff: int, public: int) -> None:
    shares = Shares(threads)
    for share, at_once in ((shares.staff_pages, staff), (shares.public_pages, public)):
        with ExitStack() as stack:
            for number in range(at_once):
                stack.enter_context(share(f"client {number}"))

            with pytest.raises(NoPlace), share("another client"):
                raise AssertionError("unreachable")


@pytest.mark.parametrize("threads", [3, 4, 5, 8])
def test_pages_of_strangers_leave_places_for_staff(threads: int, pool: ThreadPoolExecutor) -> None:
    shares = Shares(threads)
    with ExitStack() as stack:
        for _ in range(shares.public_pages_max):
            stack.enter_context(shares.public_pages("stranger"))
        for number in range(threads):
            pool.submit(open_public_page, shares, f"stranger {number}")
        wait_until(lambda: shares.occupied == shares.threads_max)

        assert may_open_a_page(shares)


def test_strangers_get_the_place_in_turn(pool: ThreadPoolExecutor) -> None:
    """So a stranger who logs in gets the place after at most one request of each that sends many."""
    shares = Shares(5)
    served: list[str] = []
    with shares.public_pages("flood"):
        for client in ("flood", "login"):
            pool.submit(open_public_page, shares, client, served)
            wait_until(partial(shares.waiting.__contains__, ("public pages", client)))
        with pytest.raises(NoPlace), shares.public_pages("flood"):
            raise AssertionError("unreachable")

    wait_until(lambda: served == ["flood", "login"])


@pytest.mark.parametrize("threads", [2, 3, 4, 5, 8, 100])
def test_slow_work_of_all_kinds_leaves_one_thread(threads: int) -> None:
    shares = Shares(threads)
    with ExitStack() as stack:
        while may_open_a_page(shares):
            stack.enter_context(shares.staff_pages("user"))
        client = 0
        while may_filter(shares, str(client)):
            stack.enter_context(shares.filters(str(client)))
            client += 1

        assert shares.occupied == threads - 1
        with pytest.raises(NoThread), shares.filters("another"):
            raise AssertionError("unreachable")


def test_other_client_filters_beside_one_that_uses_its_share() -> None:
    shares = Shares(4)
    with shares.filters("a"), shares.filters("a"):
        assert not may_filter(shares, "a")
        assert may_filter(shares, "b")
        assert may_open_a_page(shares)


def test_one_read_of_a_client_waits_for_the_next_place(pool: ThreadPoolExecutor) -> None:
    shares = Shares(8)
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(shares.filters("a"))
        waiting = start_waiting(shares, pool)

        with pytest.raises(NoPlace), shares.filters("a"):  # another thread waits already
            raise AssertionError("unreachable")
        assert may_filter(shares, "b")
        assert not waiting.done()
    waiting.result(timeout=SECONDS_MAX)

    assert (shares.occupied, shares.running, shares.waiting) == (0, {}, {})


def test_waiting_read_gives_way_to_other_clients(pool: ThreadPoolExecutor) -> None:
    """Otherwise one client would use all threads but the last one of a small worker."""
    shares = Shares(4)
    with shares.filters("a"), shares.filters("a"):
        waiting = start_waiting(shares, pool)

        assert may_filter(shares, "b")

        with pytest.raises(NoPlace):
            waiting.result(timeout=SECONDS_MAX)
        start_waiting(shares, pool)


def test_read_does_not_wait_in_the_last_thread() -> None:
    shares = Shares(2)
    with shares.filters("a"), pytest.raises(NoPlace), shares.filters("a"):
        raise AssertionError("unreachable")


def test_read_that_waits_too_long_is_refused(settings: Settings) -> None:
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0.05
    shares = Shares(4)
    with shares.filters("a"), shares.filters("a"):
        with pytest.raises(NoPlace), shares.filters("a"):
            raise AssertionError("unreachable")

        assert (shares.occupied, shares.waiting) == (2, {})


def test_exports_run_one_at_a_time_and_logins_one_for_each_address() -> None:
    shares = Shares(4)
    with shares.exports(), shares.logins("192.0.2.1"), shares.logins("192.0.2.2"):
        for share in (shares.exports(), shares.logins("192.0.2.1")):
            with pytest.raises(NoPlace), share:
                raise AssertionError("unreachable")


def test_many_threads_never_exceed_the_shares(settings: Settings) -> None:
    """A thread may get its place just when it gives up, or when it has to give way."""
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0.0025
    shares = Shares(6)
    outcomes: Counter[bool] = Counter()
    exceeded: list[int] = []

    def work(client: str) -> None:
        for _ in range(200):
            try:
                with shares.filters(client):
                    if shares.running["filters", client] > 3:
                        exceeded.append(1)
                    threading.Event().wait(0.0003)
            except NoPlace:
                outcomes[False] += 1
            else:
                outcomes[True] += 1

    with ThreadPoolExecutor(12) as pool:
        for future in [pool.submit(work, "ab"[number % 2]) for number in range(12)]:
            future.result(timeout=SECONDS_MAX)

    assert outcomes[True]
    assert outcomes[False]
    assert not exceeded
    assert (shares.occupied, shares.running, shares.waiting) == (0, {}, {})
