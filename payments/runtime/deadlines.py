"""Deadlines that hold even if a database or a network never responds.

A server that hangs does not enforce its own timeouts, and a network that drops every packet reports no error. So a
watchdog thread looks at the clock and aborts connections whose deadline has passed.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet

# For all statements of a request together, including a new connection.
DATABASE_SECONDS_MAX = 2.5

# If another server can run the query instead, a connection is aborted this much before the deadline.
FAILOVER_SECONDS = 0.4

CHECK_INTERVAL_SECONDS = 0.1

logger = logging.getLogger(__name__)


class Abortable(Protocol):
    """A connection that the watchdog can abort, from its own thread and repeatedly."""

    # How long before the deadline the connection is aborted, so that time is left for another server.
    failover_seconds: float = 0

    @property
    def is_waiting(self) -> bool:
        """Whether the request currently waits for this connection."""
        return True

    def abort(self) -> None:
        """End the wait: the waiting thread gets an error."""

    def close(self) -> None:
        """Release the resources that `abort` needs. The default needs none."""
        return


class Deadline:
    """A deadline for the duration of a `with` block, or between `begin` and `end`.

    The watchdog aborts the registered connections after the deadline, and again at each check until the block ends.
    """

    def __init__(self, watchdog: "Watchdog", seconds_max: float) -> None:
        self.watchdog = watchdog
        self.seconds_max = seconds_max
        self.lock = threading.Lock()
        self.ends_at: float | None = None  # a time of time.monotonic(); None outside of the block
        self.has_aborted = False
        self.connections: dict[str, Abortable] = {}

    def register(self, connection: Abortable, *, name: str = "") -> None:
        """Apply the deadline to a connection. It replaces the connection of the same name."""
        with self.lock:
            self.remove(name)
            self.connections[name] = connection

    def unregister(self, *, name: str = "") -> None:
        with self.lock:
            self.remove(name)

    def remove(self, name: str) -> None:
        if connection := self.connections.pop(name, None):
            connection.close()

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, *_error: object) -> None:
        self.end()

    def begin(self) -> None:
        if self.watchdog.thread is None:
            self.watchdog.start()
        self.has_aborted = False
        self.ends_at = time.monotonic() + self.seconds_max

    def end(self) -> None:
        with self.lock:  # wait for an abort in progress: it must not hit the next request
            self.ends_at = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time of a block that does not use the connections."""
        remaining_seconds = self.remaining_seconds
        with self.lock:
            was_active, self.ends_at = self.is_active, None
        try:
            yield
        finally:
            if was_active:
                self.ends_at = time.monotonic() + remaining_seconds

    @property
    def is_active(self) -> bool:
        return self.ends_at is not None

    @property
    def remaining_seconds(self) -> float:
        """Return the time until the deadline, negative after it; outside of the block, the whole time."""
        ends_at = self.ends_at
        return self.seconds_max if ends_at is None else ends_at - time.monotonic()

    def abort_if_expired(self, now: float) -> None:
        """Abort the connections that the request still waits for; `now` is of time.monotonic.

        Only the first abort is early. After it, the other connections have until the deadline.
        """
        with self.lock:
            if self.ends_at is None:
                return
            for connection in self.connections.values():
                failover_seconds = 0 if self.has_aborted else connection.failover_seconds
                if now >= self.ends_at - failover_seconds and connection.is_waiting:
                    self.has_aborted = True
                    connection.abort()


class Watchdog:
    """A thread that enforces the deadlines of all other threads. It starts with the first deadline."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.deadlines: WeakSet[Deadline] = WeakSet()
        self.thread: threading.Thread | None = None

    def new_deadline(self, *, seconds_max: float = DATABASE_SECONDS_MAX) -> Deadline:
        """Return a new deadline. The watchdog enforces it until it is garbage-collected."""
        deadline = Deadline(self, seconds_max)
        with self.lock:
            self.deadlines.add(deadline)
        return deadline

    def start(self) -> None:
        """Start the thread, unless another thread has just done so."""
        with self.lock:
            if self.thread is None:
                self.thread = threading.Thread(target=self.run, name="watchdog", daemon=True)
                self.thread.start()

    def forget_thread(self) -> None:
        """Forget the thread, which does not exist in a forked process."""
        self.thread = None

    def run(self) -> None:
        while True:
            time.sleep(CHECK_INTERVAL_SECONDS)
            self.enforce_deadlines()

    def enforce_deadlines(self) -> None:
        """Abort the connections whose deadline has passed. Refer to the deadlines only meanwhile: threads may end."""
        with self.lock:
            deadlines = list(self.deadlines)
        now = time.monotonic()
        for deadline in deadlines:
            try:
                deadline.abort_if_expired(now)
            except Exception:  # the other deadlines must still be enforced
                logger.exception("Cannot abort a connection whose deadline has passed.")


class ThreadDeadlines(threading.local):
    """The deadlines of a thread. A request replaces them by those of its session."""

    def __init__(self, watchdog: Watchdog) -> None:
        self.database = watchdog.new_deadline()
