"""A limit for log lines that clients can cause."""

import threading
import time
from collections.abc import Callable

INTERVAL_SECONDS = 60
TEXTS_MAX = 10


class LogLimit:
    """Allows each text once a minute, and only a few different texts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.lock = threading.Lock()
        self.started_at = clock()
        self.texts: set[str] = set()

    def allows(self, text: str) -> bool:
        """Return whether to log the text, and remember it."""
        with self.lock:
            if self.clock() - self.started_at >= INTERVAL_SECONDS:
                self.clear()
            is_allowed = text not in self.texts and len(self.texts) < TEXTS_MAX
            if is_allowed:
                self.texts.add(text)
            return is_allowed

    def clear(self) -> None:
        self.started_at = self.clock()
        self.texts.clear()
