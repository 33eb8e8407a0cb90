"""Shares of a worker's threads, so that slow work of one kind or of one client leaves threads for other requests."""

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager


class NoPlace(Exception):
    """A client, or a kind of work, already uses its share of the threads."""


class Share:
    """Gives places to work by its name: at most `places_max` at a time, and `waiting_max` that wait for a place.

    A thread that waits is occupied too. So both numbers together are the share.
    """

    def __init__(self, *, places_max: int, waiting_max: int = 0, wait_seconds: float = 0.0) -> None:
        self.places_max = places_max
        self.waiting_max = waiting_max
        self.wait_seconds = wait_seconds
        self.condition = threading.Condition()
        self.running: Counter[Hashable] = Counter()
        self.waiting: Counter[Hashable] = Counter()

    @contextmanager
    def place(self, name: Hashable, *, can_wait: bool = True) -> Iterator[None]:
        """Occupy a place for the duration of the block. Wait for it, if a waiting place is free.

        :raises NoPlace: all places are occupied
        """
        with self.condition:
            if not self.has_place(name) and not (can_wait and self.wait(name)):
                raise NoPlace
            self.running[name] += 1
        try:
            yield
        finally:
            with self.condition:
                self.running[name] -= 1
                if not self.running[name]:
                    del self.running[name]
                self.condition.notify_all()

    def has_place(self, name: Hashable) -> bool:
        return self.running[name] < self.places_max

    def wait(self, name: Hashable) -> bool:
        """Wait for a place, and return whether there is one."""
        if self.waiting[name] >= self.waiting_max:
            return False
        self.waiting[name] += 1
        try:
            return self.condition.wait_for(lambda: self.has_place(name), timeout=self.wait_seconds)
        finally:
            self.waiting[name] -= 1
            if not self.waiting[name]:
                del self.waiting[name]
