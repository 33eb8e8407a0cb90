"""Spreads events of several threads over time."""

import threading
import time


class Pace:
    """Lets one event begin in each interval, for example so that threads do not all connect to a database at once."""

    def __init__(self, interval_seconds: float) -> None:
        self.interval_seconds = interval_seconds
        self.lock = threading.Lock()
        self.next_at = 0.0  # a time of time.monotonic()

    def wait(self) -> None:
        """Return when the next event may begin."""
        with self.lock:
            begins_at = max(self.next_at, time.monotonic())
            self.next_at = begins_at + self.interval_seconds
        time.sleep(max(0.0, begins_at - time.monotonic()))
