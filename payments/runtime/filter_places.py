"""Places for reads with filters, which may be slow: each client has one in a worker, and a few on the machine.

A slow filter keeps a processor of the database server busy. Half of the workers is a client's share, so that its
filters leave processors to others.

The places on the machine are a row of locks. A read that waits for one holds the lock after them, so that the workers
take turns.
"""

import hashlib
from collections.abc import Hashable
from time import monotonic, sleep

from payments.runtime.byte_locks import ByteLocks
from payments.runtime.shares import NoPlace, Share

FILE_NAME = "filters.lock"

# How long a read waits until others of the same client have ended.
WAIT_SECONDS_MAX = 1.0

POLL_SECONDS = 0.002

NAME_BYTES = 6  # of the number of a client's first lock; the largest number of a lock is 2**63 - 1
LOCKS_MAX = 2**10  # of a client


class FilterPlaces:
    """Gives places to reads by the name of their client, at most `on_machine` at a time.

    At most `waiting_max` reads of a client wait in this process.
    """

    def __init__(self, *, on_machine: int, waiting_max: int) -> None:
        self.on_machine = on_machine
        self.in_process = Share(places_max=1, waiting_max=waiting_max)
        self.locks = ByteLocks(FILE_NAME)
        self.held: dict[Hashable, int] = {}  # the lock of the read that has the place in this process

    def acquire(self, name: Hashable) -> bool:
        """Occupy a place without waiting, and return whether there was one."""
        if not self.in_process.acquire(name):
            return False
        try:
            self.acquire_on_machine(name, before=0)
        except NoPlace:
            return False
        return True

    def wait(self, name: Hashable) -> None:
        """Wait for a place, and occupy it.

        :raises NoPlace: too many reads wait already, or no place has become free
        """
        ends_at = monotonic() + WAIT_SECONDS_MAX
        self.in_process.wait(name, seconds_max=WAIT_SECONDS_MAX)
        self.acquire_on_machine(name, before=ends_at)

    def release(self, name: Hashable) -> None:
        self.locks.release(self.held.pop(name))
        self.in_process.release(name)

    def acquire_on_machine(self, name: Hashable, *, before: float) -> None:
        """Lock a place on the machine until `before`, a time of time.monotonic(). Else release that in the process.

        :raises NoPlace: other processes have all places
        """
        first = first_lock(name)
        places = range(first, first + self.on_machine)
        next_place = places.stop
        try:
            self.lock_one_of([next_place], before=before)
            try:
                self.held[name] = self.lock_one_of(places, before=before)
            finally:
                self.locks.release(next_place)
        except NoPlace:
            self.in_process.release(name)
            raise

    def lock_one_of(self, numbers: range | list[int], *, before: float) -> int:
        """Return the number that was locked.

        :raises NoPlace: all are locked until `before`
        """
        while True:
            for number in numbers:
                if self.locks.acquire(number):
                    return number
            if monotonic() >= before:
                raise NoPlace
            sleep(POLL_SECONDS)


def first_lock(name: Hashable) -> int:
    digest = hashlib.blake2b(repr(name).encode(), digest_size=NAME_BYTES).digest()
    return int.from_bytes(digest) * LOCKS_MAX
