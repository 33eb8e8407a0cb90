"""Turns: while the database responds fast, the requests of a worker run one after the other.

Only one thread of a process runs Python at a time. If the database is near, other threads gain nothing from the short
waits for it, but each switch between threads costs time, and so does each further connection.
"""

from collections import deque
from threading import Lock, get_ident
from time import monotonic

# A database on the same machine responds faster than this, one behind a network does not.
NEAR_SECONDS = 0.0002

# Longer waits for the database end the turn.
WAIT_SECONDS_MAX = 0.005

# How often a request in the queue checks this. The request that has the turn does not: a wait with a time limit is
# expensive on virtual machines.
CHECK_SECONDS = 0.005

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
    """The turns of a process, first come, first served."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.owner: int | None = None  # the thread whose turn it is
        self.waiting_since: float | None = None  # a time of time.monotonic(), while the owner waits for the database
        self.queue: deque[Place] = deque()
        self.count = 0
        self.shortest = self.shortest_before = float("inf")  # seconds

    @property
    def are_useful(self) -> bool:
        """Return whether the database is near. The shortest of the last round trips shows it even on a busy machine."""
        return min(self.shortest, self.shortest_before) < NEAR_SECONDS

    def begin(self) -> None:
        """Begin the turn of this thread. Wait until those before it have ended."""
        if self.shortest >= NEAR_SECONDS and not self.are_useful:
            return
        with self.lock:
            if self.owner is None:
                self.owner = get_ident()
                return
            place = Place()
            self.queue.append(place)
        self.wait_for_turn(place)

    def wait_for_turn(self, place: Place) -> None:
        """Wait until the turn of this thread begins. End other turns that wait for long. Give up after some time."""
        gives_up_at = monotonic() + TURN_SECONDS_MAX
        while not place.waiting.acquire(timeout=CHECK_SECONDS):
            with self.lock:
                if self.owner_waits_for_long:
                    self.pass_on()
                elif place in self.queue and monotonic() >= gives_up_at:
                    self.queue.remove(place)
                    return

    @property
    def owner_waits_for_long(self) -> bool:
        return self.waiting_since is not None and monotonic() - self.waiting_since >= WAIT_SECONDS_MAX

    def pass_on(self) -> None:
        """Begin the turn of the next thread, with the lock."""
        self.waiting_since = None
        if self.queue:
            place = self.queue.popleft()
            self.owner = place.thread
            place.waiting.release()
        else:
            self.owner = None

    def end(self) -> None:
        """End the turn of this thread, if it has one."""
        if self.owner != get_ident():
            return
        with self.lock:
            if self.owner == get_ident():  # another thread may just have ended the turn
                self.pass_on()

    def begin_wait(self, now: float) -> None:
        """Record that this thread begins to wait for the database; `now` is of time.monotonic."""
        if self.owner == get_ident():
            self.waiting_since = now

    def end_wait(self) -> None:
        if self.owner == get_ident():
            self.waiting_since = None

    def record(self, seconds: float) -> None:
        """Record how long a round trip to the database has taken."""
        self.shortest = min(self.shortest, seconds)
        self.count += 1
        if self.count >= COUNT_MAX:
            self.shortest_before, self.shortest, self.count = self.shortest, float("inf"), 0
