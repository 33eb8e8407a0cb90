"""A fast hasher that records its hashes, and requests of other clients that hash meanwhile."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ClassVar

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from payments.access.password_hasher import QueuedPasswordHasher
from payments.runtime.password_queue import wait_for_turn
from payments.runtime.process import process
from tests.support.waiting import SECONDS_MAX, wait_until

QUICK_HASHER = "tests.support.password_turns.QuickHasher"
OTHER_ADDRESS = "198.51.100.1"
FIRST_PLACE = 1  # of the queue


class RecordingHasher(PBKDF2PasswordHasher):
    """Django's hasher with few iterations. It records each password that it hashes."""

    iterations = 10
    hashed: ClassVar[list[str]] = []

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        self.hashed.append(password)
        return super().encode(password, salt, iterations)


class QuickHasher(QueuedPasswordHasher, RecordingHasher):
    """The service's hasher with few iterations."""


@contextmanager
def hashing(address: str = OTHER_ADDRESS) -> Iterator[None]:
    """Let a request in another thread hash until the block ends."""
    ended = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        start_hashing(pool, address, until=ended.wait)
        try:
            yield
        finally:
            ended.set()


@contextmanager
def hashing_until_a_request_waits(
    address: str = OTHER_ADDRESS, *, check: Callable[[], object] = bool
) -> Iterator[None]:
    """Let a request in another thread hash until a request waits for it or the block ends. Then run the check."""
    ended = threading.Event()

    def until() -> None:
        wait_until(lambda: ended.is_set() or FIRST_PLACE in process.password_queue.locks.held)
        check()

    with ThreadPoolExecutor(1) as pool:
        start_hashing(pool, address, until=until)
        try:
            yield
        finally:
            ended.set()


def start_hashing(pool: ThreadPoolExecutor, address: str, *, until: Callable[[], object]) -> None:
    started = threading.Event()

    def respond() -> None:
        with process.password_queue.request(address):
            wait_for_turn()
            started.set()
            until()

    pool.submit(respond)
    assert started.wait(timeout=SECONDS_MAX)
