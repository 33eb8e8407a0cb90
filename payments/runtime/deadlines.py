"""Deadlines that hold even if a database or a network never responds.

A server that hangs does not enforce its own timeouts, and a network that drops every packet reports no error. So each
wait for a database ends at the deadline of its thread. The database backends ask for the remaining time.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import NoReturn

from django.db import connections
from psycopg import OperationalError

from payments.conf import conf
from payments.runtime import time_limits
from payments.runtime.servers import REPLICA


class Deadline(threading.local):
    """The deadline of a `with` block: REQUEST_SECONDS_MAX after its begin. Each thread has its own."""

    def __init__(self) -> None:
        self.failover_seconds = 0.0
        self.ends_at: float | None = None  # a time of time.monotonic(); None outside of the block

    def __enter__(self) -> None:
        self.ends_at = monotonic() + conf.REQUEST_SECONDS_MAX
        self.failover_seconds = time_limits.FAILOVER.seconds if REPLICA in connections else 0

    def __exit__(self, *_error: object) -> None:
        self.ends_at = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time of a block that does not use the database."""
        paused_at, ends_at, self.ends_at = monotonic(), self.ends_at, None
        try:
            yield
        finally:
            if ends_at is not None:
                self.ends_at = ends_at + monotonic() - paused_at

    @contextmanager
    def shortened(self, seconds: float) -> Iterator[None]:
        """End the statements of a block after this time, or at the deadline if it is earlier."""
        ends_at, self.ends_at = self.ends_at, monotonic() + min(seconds, self.remaining_seconds)
        try:
            yield
        finally:
            self.ends_at = ends_at

    @property
    def is_active(self) -> bool:
        return self.ends_at is not None

    @property
    def remaining_seconds(self) -> float:
        """Return the time until the deadline, negative after it; outside of the block, the whole time."""
        return float(conf.REQUEST_SECONDS_MAX) if self.ends_at is None else self.ends_at - monotonic()

    @property
    def wait_seconds(self) -> float | None:
        """Return how long a statement may wait for the server; None outside of the block."""
        if self.ends_at is None:
            return None
        return max(self.ends_at - self.failover_seconds - monotonic(), time_limits.LATE_STATEMENT.seconds)

    def fail_wait(self) -> NoReturn:
        """Raise the error of a wait that took too long. The next wait, for another server, has until the deadline."""
        self.failover_seconds = 0
        raise OperationalError("The server did not respond before the deadline.")
