"""The time limits of a request: its deadline, REQUEST_SECONDS_MAX after its begin, and shares of that time.

A server that hangs does not enforce its own timeouts, and a network that drops every packet reports no error. So each
wait for a database ends at the deadline of its thread. The database backends ask for the remaining time.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic
from typing import NamedTuple, NoReturn

from django.db import connections
from psycopg import OperationalError

from payments.conf import conf
from payments.runtime.servers import REPLICA


class DeadlineExceeded(Exception):
    """A request has no time left for further work."""


class TimeLimit(NamedTuple):
    """A share of REQUEST_SECONDS_MAX."""

    share: float

    @property
    def seconds(self) -> float:
        return self.share * conf.REQUEST_SECONDS_MAX

    @property
    def milliseconds(self) -> str:
        """Return the limit as PostgreSQL writes it: `2000ms`."""
        return f"{round(self.seconds * 1000)}ms"


# The comments have the seconds of the default, 2.5.

STATEMENT = TimeLimit(0.8)  # 2.0
LOCK = TimeLimit(0.4)  # 1.0: a statement waits this long for another writer
NEW_CONNECTION_MIN = TimeLimit(0.08)  # 0.2: with less time, a request does not connect
LATE_STATEMENT = TimeLimit(0.16)  # 0.4: for a statement that begins after the deadline, because this machine is busy

# With a second server: a request waits this long for a new connection; the first wait ends this much before the
# deadline; and a statement ends before that, even if the connection was new.
CONNECTION_BEFORE_FAILOVER = TimeLimit(0.12)  # 0.3
FAILOVER = TimeLimit(0.16)  # 0.4
STATEMENT_BEFORE_FAILOVER = TimeLimit(0.64)  # 1.6

WAIT_FOR_READ = TimeLimit(0.2)  # 0.5: a slow read waits this long until an earlier one of its client has ended
NO_WAIT = TimeLimit(0)
WAIT_FOR_PAGE = TimeLimit(0.4)  # 1.0: a page waits this long, before its deadline begins, until earlier ones have ended
SEARCH_BY_INDEX = TimeLimit(0.06)  # 0.15: the index alone finds most searches in this time
OPTIONAL_STATEMENT = TimeLimit(0.12)  # 0.3: a page can do without its result
COUNTING = TimeLimit(0.2)  # 0.5: a rate limit waits this long for other workers
SCRAPE = TimeLimit(0.24)  # 0.6: the metrics of the database are optional
LAST_USE = TimeLimit(0.04)  # 0.1: for noting when a key was last used
SUMMING_DAYS = TimeLimit(0.28)  # 0.7: the next request sums the remaining days
SUMMING_A_DAY = TimeLimit(0.52)  # 1.3: a request has other statements before and after


class Deadline(threading.local):
    """The deadline of a `with` block: REQUEST_SECONDS_MAX after its begin. Each thread has its own."""

    def __init__(self) -> None:
        self.failover_seconds = 0.0
        self.ends_at: float | None = None  # a time of time.monotonic(); None outside of the block

    def __enter__(self) -> None:
        self.ends_at = monotonic() + conf.REQUEST_SECONDS_MAX
        self.failover_seconds = FAILOVER.seconds if REPLICA in connections else 0

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
    def extended(self, seconds: float) -> Iterator[None]:
        """Give a block so many seconds from now. It has a deadline then, also if the thread has none."""
        ends_at, self.ends_at = self.ends_at, monotonic() + seconds
        try:
            yield
        finally:
            self.ends_at = ends_at

    def check(self) -> None:
        """Raise an exception after the deadline.

        :raises DeadlineExceeded: there is no time left
        """
        if self.remaining_seconds <= 0:
            raise DeadlineExceeded

    def shortened(self, seconds: float) -> AbstractContextManager[None]:
        """End the statements of a block after this time, or at the deadline if it is earlier."""
        return self.extended(min(seconds, self.remaining_seconds))

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
        return max(self.ends_at - self.failover_seconds - monotonic(), LATE_STATEMENT.seconds)

    def fail_wait(self) -> NoReturn:
        """Raise the error of a wait that took too long. The next wait, for another server, has until the deadline."""
        self.failover_seconds = 0
        raise OperationalError("The server did not respond before the deadline.")
