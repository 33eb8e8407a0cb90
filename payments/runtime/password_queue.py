"""One password hash at a time on the machine, and a short queue of requests that wait for it.

A hash occupies a processor for half a second on purpose. A flood of logins would occupy all processors.

The queue is a row of locks. The request that holds the lock `HASHING` may hash. A waiting request holds one of the next
locks, and moves forward when the lock before its own is free. So requests hash in the order of their arrival. A request
also holds a lock for its client's address, so an address has at most one place.
"""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from payments.runtime.byte_locks import ByteLocks

FILE_NAME = "passwords.lock"

# With a hash of half a second, the last request in a full queue waits about as long as a request may wait.
WAITING_MAX = 4
WAIT_SECONDS_MAX = 2.0
POLL_SECONDS = 0.02

HASHING = 0
FIRST_ADDRESS = 2**32
ADDRESS_BYTES = 7  # the largest number of a lock is 2**63 - 1


class TooManyPasswordChecks(Exception):
    """The request cannot hash a password now: other requests do. A later request can."""


class PasswordQueue:
    """The queue of this machine, and how long a request may wait in it."""

    def __init__(self, *, wait_seconds_max: float = WAIT_SECONDS_MAX) -> None:
        self.locks = ByteLocks(FILE_NAME)
        self.wait_seconds_max = wait_seconds_max

    @contextmanager
    def request(self, address: str) -> Iterator[None]:
        """Let the block, a request from this address, hash passwords only in its turn."""
        turn = Turn(self.locks, address, wait_seconds_max=self.wait_seconds_max)
        token = current.set(turn)
        try:
            yield
        finally:
            current.reset(token)
            turn.end()


class Turn:
    """The turn of a request. It starts with the first hash and lasts until the request ends."""

    def __init__(self, locks: ByteLocks, address: str, *, wait_seconds_max: float) -> None:
        self.locks = locks
        self.address = address
        self.wait_seconds_max = wait_seconds_max
        self.held: set[int] = set()

    def wait(self) -> None:
        """Wait until the turn starts. Return at once if it has started.

        :raises TooManyPasswordChecks: if the address has a place, if the queue is full, or if the wait is too long
        """
        if HASHING in self.held:
            return
        ends_at = time.monotonic() + self.wait_seconds_max
        self.acquire(number_of(self.address), before=0)
        self.acquire(WAITING_MAX, before=0)
        for number in range(WAITING_MAX, HASHING, -1):
            self.acquire(number - 1, before=ends_at)
            self.release(number)

    def acquire(self, number: int, *, before: float) -> None:
        """Acquire a lock. If another request holds it, try again until `before`, a time of time.monotonic().

        :raises TooManyPasswordChecks: if another request still holds it then
        """
        while not self.locks.acquire(number):
            if time.monotonic() >= before:
                raise TooManyPasswordChecks
            time.sleep(POLL_SECONDS)
        self.held.add(number)

    def release(self, number: int) -> None:
        self.held.remove(number)
        self.locks.release(number)

    def end(self) -> None:
        for number in tuple(self.held):
            self.release(number)


current: ContextVar[Turn | None] = ContextVar("current", default=None)


def wait_for_turn() -> None:
    """Wait for the turn of the current request. Commands have none, and never wait.

    :raises TooManyPasswordChecks: if the request gets no turn
    """
    if turn := current.get():
        turn.wait()


def number_of(address: str) -> int:
    """Return the number of the lock of an address."""
    digest = hashlib.blake2b(address.encode(), digest_size=ADDRESS_BYTES).digest()
    return FIRST_ADDRESS + int.from_bytes(digest)
