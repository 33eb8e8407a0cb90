"""Shares of a worker's threads, so that slow work of one kind or of one client leaves threads for other requests."""

from collections import Counter, deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock


class NoPlace(Exception):
    """A client, or a kind of work, already uses its share."""


class Share:
    """Gives places to work by its name: at most `places_max` at a time, and `waiting_max` that wait for a place.

    The work that has waited longest gets the next place.
    """

    def __init__(self, *, places_max: int, waiting_max: int = 0) -> None:
        self.places_max = places_max
        self.waiting_max = waiting_max
        self.lock = Lock()
        self.running: Counter[Hashable] = Counter()
        self.waiting: dict[Hashable, deque[Lock]] = {}  # each lock is released when its thread has a place

    @contextmanager
    def place(self, name: Hashable) -> Iterator[None]:
        """Occupy a place for the duration of the block, without waiting.

        :raises NoPlace: all places are occupied
        """
        if not self.acquire(name):
            raise NoPlace
        try:
            yield
        finally:
            self.release(name)

    def acquire(self, name: Hashable) -> bool:
        """Occupy a place, and return whether there was one."""
        with self.lock:
            if self.running[name] >= self.places_max:
                return False
            self.running[name] += 1
            return True

    def wait(self, name: Hashable, *, seconds_max: float) -> None:
        """Wait for a place, and occupy it.

        :raises NoPlace: too many threads wait already, or no place has become free
        """
        with self.lock:
            if self.running[name] < self.places_max:
                self.running[name] += 1
                return
            if len(self.waiting.get(name, ())) >= self.waiting_max:
                raise NoPlace
            turn = Lock()
            turn.acquire()
            self.waiting.setdefault(name, deque()).append(turn)
        if not turn.acquire(timeout=seconds_max):
            self.stop_waiting(name, turn)

    def stop_waiting(self, name: Hashable, turn: Lock) -> None:
        """Leave the queue, unless the thread has just got its place.

        :raises NoPlace: the thread has left the queue
        """
        with self.lock:
            if turn in self.waiting.get(name, ()):
                self.waiting[name].remove(turn)
                if not self.waiting[name]:
                    del self.waiting[name]
                raise NoPlace

    def release(self, name: Hashable) -> None:
        """Give the place to the thread that has waited longest."""
        with self.lock:
            if waiting := self.waiting.get(name):
                waiting.popleft().release()
                if not waiting:
                    del self.waiting[name]
                return
            self.running[name] -= 1
            if not self.running[name]:
                del self.running[name]
