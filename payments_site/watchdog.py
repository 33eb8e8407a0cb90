"""The time that a request may wait: for the database, all its statements together, and for its own body.

A database that hangs keeps no time limits of its own, a network that drops every packet reports nothing, and a client
sends when it likes. So this process looks at the clock itself, and cuts the line on which it has waited too long.
"""

import logging
import os
import threading
import time
from typing import Protocol
from weakref import WeakSet

# For all statements of a request together, and a new connection if need be; and for its body.
DATABASE_SECONDS_MAX = 2.5
BODY_SECONDS_MAX = 1.0

LOOKS_EVERY_SECONDS = 0.1

logger = logging.getLogger(__name__)


class Line(Protocol):
    """What can end a wait, from another thread, and more than once."""

    def cut(self) -> None: ...

    def close(self) -> None:
        """Let go of what was opened to cut it. Most have opened nothing."""
        return


class Watch:
    """A wait, which is under way within a `with` block, and the line on which it is."""

    def __init__(self, seconds_max: float) -> None:
        self.seconds_max = seconds_max
        self.lock = threading.Lock()
        self.ends_at: float | None = None
        self.line: Line | None = None

    def keep(self, line: Line | None) -> None:
        """Look after a line in place of that before."""
        with self.lock:
            if self.line is not None:
                self.line.close()
            self.line = line

    def __enter__(self) -> None:
        """Have the line cut, again and again, once the time is over."""
        if watchdog.thread is None:
            watchdog.start()
        self.ends_at = time.monotonic() + self.seconds_max

    def __exit__(self, *_error: object) -> None:
        if self.ends_at is not None and time.monotonic() > self.ends_at:
            with self.lock:  # what is being cut is not yet the next one's
                self.ends_at = None
        self.ends_at = None

    @property
    def is_on(self) -> bool:
        return self.ends_at is not None

    @property
    def seconds_left(self) -> float:
        ends_at = self.ends_at
        return self.seconds_max if ends_at is None else ends_at - time.monotonic()

    def cut_if_late(self, now: float) -> None:
        with self.lock:
            ends_at = self.ends_at
            if ends_at is not None and now >= ends_at and self.line is not None:
                self.line.cut()


class Watchdog:
    """Looks after the waits of all threads, as long as those live, in a thread of its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.watches: WeakSet[Watch] = WeakSet()
        self.thread: threading.Thread | None = None

    def new_watch(self, *, seconds_max: float) -> Watch:
        watch = Watch(seconds_max)
        with self.lock:
            self.watches.add(watch)
        return watch

    def start(self) -> None:
        self.thread = threading.Thread(target=self.look_after, name="watchdog", daemon=True)
        self.thread.start()

    def forget_thread(self) -> None:
        """Take note that this process was forked, which no thread outlives but the one that did it."""
        self.thread = None

    def look_after(self) -> None:
        while True:
            time.sleep(LOOKS_EVERY_SECONDS)
            with self.lock:
                watches = list(self.watches)
            now = time.monotonic()
            for watch in watches:
                try:
                    watch.cut_if_late(now)
                except Exception:  # the others, and the next ones, are to be looked after all the same
                    logger.exception("What waits too long could not be cut.")


class Waits(threading.local):
    """What a thread that answers requests waits for."""

    def __init__(self) -> None:
        self.database = watchdog.new_watch(seconds_max=DATABASE_SECONDS_MAX)
        self.body = watchdog.new_watch(seconds_max=BODY_SECONDS_MAX)


watchdog = Watchdog()
os.register_at_fork(after_in_child=watchdog.forget_thread)
waits = Waits()
