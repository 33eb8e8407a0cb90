"""Turns: while the database responds fast, the requests of a worker run one after the other.

Only one thread of a process runs Python at a time. If the database is near, other threads gain nothing from the short
waits for it, but each switch between threads costs time, and so does each further connection.
"""

import select
from collections import deque
from threading import Lock, get_ident

# A database on the same machine responds faster than this, one behind a network does not.
NEAR_SECONDS = 0.0002

# Longer waits end the turn.
WAIT_MS_MAX = 1

# A request that has waited so long for its turn runs without one.
TURN_SECONDS_MAX = 0.05

# After so many round trips, those before are forgotten.
COUNT_MAX = 100


class Place:
    """The place of a thread in the queue."""

    def __init__(self) -> None:
        self.thread = get_ident()
        self.waiting = Lock()  # is released when the turn of the thread begins
        self.waiting.acquire()


class Turns:
    """The turns of a process, first come, first served. Use it as a context manager for a request."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.owner: int | None = None  # the thread whose turn it is
        self.queue: deque[Place] = deque()
        self.count = 0
        self.shortest = self.shortest_before = float("inf")  # seconds

    @property
    def are_useful(self) -> bool:
        """Return whether the database is near. The shortest of the last round trips shows it even on a busy machine."""
        return min(self.shortest, self.shortest_before) < NEAR_SECONDS

    def __enter__(self) -> None:
        if self.shortest >= NEAR_SECONDS and not self.are_useful:
            return
        with self.lock:
            if self.owner is None:
                self.owner = get_ident()
                return
            place = Place()
            self.queue.append(place)
        if not place.waiting.acquire(timeout=TURN_SECONDS_MAX):
            self.leave(place)

    def leave(self, place: Place) -> None:
        """Leave the queue, unless the turn has just begun."""
        with self.lock:
            if place in self.queue:
                self.queue.remove(place)

    def __exit__(self, *_error: object) -> None:
        if self.owner == get_ident():
            self.end()

    def end(self) -> None:
        """End the turn of this thread, if it has one."""
        if self.owner != get_ident():
            return
        with self.lock:
            if self.queue:
                place = self.queue.popleft()
                self.owner = place.thread
                place.waiting.release()
            else:
                self.owner = None

    def wait(self, answer: select.poll) -> None:
        """Wait for an answer of the database. A long wait ends the turn."""
        if self.owner != get_ident() or not answer.poll(WAIT_MS_MAX):
            self.end()
            answer.poll()

    def record(self, seconds: float) -> None:
        """Record how long a round trip to the database has taken."""
        self.shortest = min(self.shortest, seconds)
        self.count += 1
        if self.count >= COUNT_MAX:
            self.shortest_before, self.shortest, self.count = self.shortest, float("inf"), 0
