"""Fails fast after a slow outage: a thread should not wait for what another thread has just waited for in vain.

After a read of some data has failed slowly, further reads of the same data fail at once, except for one at a time that
tries whether the database responds again.
"""

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from time import monotonic
from typing import Self

from django.db import OperationalError

from payments.runtime.database_errors import is_outage, is_timeout

# A failure that took longer than this occupied its thread for too long.
SLOW_SECONDS = 0.5

RETRY_SECONDS = 0.2


class RecentOutage(OperationalError):
    """The database has just failed to respond to another request."""


@dataclass
class Outage:
    """An outage of some data."""

    retry_at: float  # a time of time.monotonic()
    is_retrying: bool = False


class Guard:
    """A context manager that reads data, or fails fast during an outage of this data. A slow outage is recorded.

    `timeouts_count`: a statement that PostgreSQL ends at its time limit is an outage, because it is usually fast.
    `error` is the error of the read; set it if the block does not raise it.
    Entering raises RecentOutage if another thread retries, or if it is too early for that.
    """

    def __init__(self, outages: "Outages", name: Hashable, *, timeouts_count: bool = True) -> None:
        self.outages = outages
        self.name = name
        self.timeouts_count = timeouts_count
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        if self.name in self.outages.by_name and not self.outages.admits(self.name):
            raise RecentOutage("Another request has just waited for the database in vain.")
        self.started_at = monotonic()
        return self

    def __exit__(self, _type: object, raised: BaseException | None, _traceback: object) -> None:
        error = raised or self.error
        if error is not None and monotonic() - self.started_at >= SLOW_SECONDS and self.is_outage(error):
            self.outages.begin(self.name)
        elif self.name in self.outages.by_name:
            self.outages.end(self.name)

    def is_outage(self, error: BaseException) -> bool:
        return is_outage(error) and (self.timeouts_count or not is_timeout(error))


class Outages:
    """The current outages of a process, by the name of the data."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_name: dict[Hashable, Outage] = {}

    def admits(self, name: Hashable) -> bool:
        """Return whether the data can be read. During an outage, this is the start of the only retry."""
        with self.lock:
            outage = self.by_name.get(name)
            if outage is None:
                return True
            if outage.is_retrying or monotonic() < outage.retry_at:
                return False
            outage.is_retrying = True
            return True

    def begin(self, name: Hashable) -> None:
        """Begin or continue an outage."""
        with self.lock:
            self.by_name[name] = Outage(monotonic() + RETRY_SECONDS)

    def end(self, name: Hashable) -> None:
        """End an outage: the data can be read, or the read fails fast and occupies no thread."""
        with self.lock:
            self.by_name.pop(name, None)
