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

SPARE_SECONDS_MAX = 0.4

LOOKS_EVERY_SECONDS = 0.1

logger = logging.getLogger(__name__)


class Line(Protocol):
    """What can end a wait, from another thread, and more than once."""

    # How long before the end of all waiting it is cut: for what may be tried in its place.
    spare_seconds: float = 0

    @property
    def is_waited_on(self) -> bool:
        return True

    def cut(self) -> None: ...

    def close(self) -> None:
        """Let go of what was opened to cut it. Most have opened nothing."""
        return


class Watch:
    """A wait, which is under way within a `with` block, and the lines of which it is on one at a time."""

    def __init__(self, seconds_max: float) -> None:
        self.seconds_max = seconds_max
        self.lock = threading.Lock()
        self.ends_at: float | None = None
        self.has_cut = False
        self.lines: dict[str, Line] = {}

    def keep(self, line: Line | None, *, name: str = "") -> None:
        """Look after a line in place of the one before of that name."""
        with self.lock:
            if before := self.lines.pop(name, None):
                before.close()
            if line is not None:
                self.lines[name] = line

    def __enter__(self) -> None:
        """Have the line cut, again and again, once the time is over."""
        if watchdog.thread is None:
            watchdog.start()
        self.has_cut = False
        self.ends_at = time.monotonic() + self.seconds_max

    def __exit__(self, *_error: object) -> None:
        if self.ends_at is not None and time.monotonic() > self.ends_at - SPARE_SECONDS_MAX:
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
            if (ends_at := self.ends_at) is None:
                return
            for line in self.lines.values():
                spare_seconds = 0 if self.has_cut else line.spare_seconds
                if now >= ends_at - spare_seconds and line.is_waited_on:
                    self.has_cut = True
                    line.cut()


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
