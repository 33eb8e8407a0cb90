"""One request of the machine hashes at a time, and a few others wait in the order of their arrival."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from payments.runtime.password_queue import WAITING_MAX, PasswordQueue, TooManyPasswordChecks, wait_for_turn
from tests.support.processes import ROOT
from tests.support.waiting import SECONDS_MAX, wait_until

PROCESSES, THREADS, TURNS = 2, 3, 20
FIRST, SECOND, THIRD = "192.0.2.1", "192.0.2.2", "192.0.2.3"

# Requests from several addresses take turns, each in its thread. Two at the same time would create the file twice.
TAKE_TURNS = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from django.conf import settings
from payments.runtime.password_queue import PasswordQueue, TooManyPasswordChecks, wait_for_turn
directory, process, threads, turns = Path(sys.argv[1]), *map(int, sys.argv[2:])
settings.configure(RUNTIME_DIRECTORY=directory)
queue = PasswordQueue(wait_seconds_max=60)

def take_turns(thread):
    taken = 0
    while taken < turns:
        with suppress(TooManyPasswordChecks), queue.request(f"192.0.2.{process * threads + thread}"):
            wait_for_turn()
            (directory / "hashing").touch(exist_ok=False)
            time.sleep(0.001)
            (directory / "hashing").unlink()
            taken += 1
    return taken

with ThreadPoolExecutor() as pool:
    print(sum(pool.map(take_turns, range(threads))))
"""


@pytest.fixture
def patient(directory: Path) -> PasswordQueue:
    """A queue in which requests wait longer than a test may take."""
    return PasswordQueue(wait_seconds_max=2 * SECONDS_MAX)


@pytest.fixture
def impatient(directory: Path) -> PasswordQueue:
    """A queue in which no request waits."""
    return PasswordQueue(wait_seconds_max=0)


def is_refused(queue: PasswordQueue, address: str) -> bool:
    with queue.request(address):
        try:
            wait_for_turn()
        except TooManyPasswordChecks:
            return True
    return False


def start_waiting(
    pool: ThreadPoolExecutor, queue: PasswordQueue, address: str, *, place: int, work: Callable[[], object]
) -> None:
    """Start a request that waits for its turn and then works. Return when it has this place in the queue."""

    def respond() -> None:
        with queue.request(address):
            wait_for_turn()
            work()

    pool.submit(respond)
    wait_until(lambda: place in queue.locks.held, poll_seconds=0.001)


def test_threads_of_several_processes_hash_one_at_a_time(directory: Path) -> None:
    directory.mkdir(mode=0o700)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", TAKE_TURNS, directory, str(number), str(THREADS), str(TURNS)],
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                )
            )
            for number in range(PROCESSES)
        ]
        taken = [process.communicate()[0] for process in processes]

    assert [int(text or 0) for text in taken] == [THREADS * TURNS] * PROCESSES


def test_requests_hash_in_the_order_of_their_arrival(patient: PasswordQueue) -> None:
    order: list[str] = []
    with ThreadPoolExecutor() as pool:
        with patient.request(FIRST):
            wait_for_turn()
            for place, address in enumerate((SECOND, THIRD), start=1):
                start_waiting(pool, patient, address, place=place, work=partial(order.append, address))
        with patient.request(FIRST):
            wait_for_turn()
            order.append(FIRST)

    assert order == [SECOND, THIRD, FIRST]


def test_address_that_hashes_is_refused_at_once(patient: PasswordQueue) -> None:
    with ThreadPoolExecutor() as pool, patient.request(FIRST):
        wait_for_turn()

        assert pool.submit(is_refused, patient, FIRST).result(timeout=SECONDS_MAX)


def test_address_that_waits_is_refused_at_once(patient: PasswordQueue) -> None:
    with ThreadPoolExecutor() as pool, patient.request(FIRST):
        wait_for_turn()
        start_waiting(pool, patient, SECOND, place=1, work=lambda: None)

        assert pool.submit(is_refused, patient, SECOND).result(timeout=SECONDS_MAX)


def test_request_is_refused_at_once_if_the_queue_is_full(patient: PasswordQueue) -> None:
    with ThreadPoolExecutor(WAITING_MAX + 1) as pool, patient.request(FIRST):
        wait_for_turn()
        for place in range(1, WAITING_MAX + 1):
            start_waiting(pool, patient, f"198.51.100.{place}", place=place, work=lambda: None)

        assert pool.submit(is_refused, patient, THIRD).result(timeout=SECONDS_MAX)


def test_request_is_refused_after_the_longest_wait(impatient: PasswordQueue) -> None:
    with impatient.request(FIRST):
        wait_for_turn()

        assert is_refused(impatient, SECOND)


def test_refused_request_leaves_the_queue(impatient: PasswordQueue) -> None:
    with impatient.request(FIRST):
        wait_for_turn()
        held = set(impatient.locks.held)
        is_refused(impatient, SECOND)

        assert impatient.locks.held == held
    assert impatient.locks.held == set()


def test_turn_lasts_until_the_request_ends(impatient: PasswordQueue) -> None:
    with impatient.request(FIRST):
        wait_for_turn()
        wait_for_turn()

        assert is_refused(impatient, SECOND)
    assert not is_refused(impatient, SECOND)


def test_request_that_does_not_hash_takes_no_turn(impatient: PasswordQueue) -> None:
    with impatient.request(FIRST):
        assert not is_refused(impatient, FIRST)


def test_thread_without_a_request_does_not_wait(impatient: PasswordQueue) -> None:
    with ThreadPoolExecutor() as pool, impatient.request(FIRST):
        wait_for_turn()

        pool.submit(wait_for_turn).result()


def test_thread_hashes_without_a_turn_after_its_request(impatient: PasswordQueue) -> None:
    with impatient.request(FIRST):
        pass
    wait_for_turn()

    assert impatient.locks.held == set()
