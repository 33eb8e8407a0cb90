"""Rate limits: exact counts of events, for all workers of a machine, in a SQLite file that they share.

The service's database is not used for counting: rate limits hold while it is down, and do not slow it.
"""

import hashlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from payments.runtime import time_limits
from payments.runtime.directory import prepare_runtime_directory

FILE_NAME = "limits.sqlite3"
RETRY_SECONDS = 0.005
SWEEP_INTERVAL_SECONDS = 60

# A worker reads the clock, and then waits until it may write. So events can be counted this late and out of order.
DELAY_SECONDS_MAX = 5

# After a power cut the last counts may be missing, but the file is intact.
JOURNAL = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"

# A window starts with the first event after the end of the previous window. If the clock is set back by more than
# DELAY_SECONDS_MAX, a new window starts: otherwise the current window would last much longer.
CREATE = """
    CREATE TABLE IF NOT EXISTS windows (
        name TEXT PRIMARY KEY, ends REAL NOT NULL, events INTEGER NOT NULL
    ) WITHOUT ROWID
"""
COUNT = """
    INSERT INTO windows VALUES (:name, :now + :seconds, 1)
    ON CONFLICT (name) DO UPDATE SET
        events = CASE WHEN ends > :now AND ends <= :now + :seconds + :delay THEN events + 1 ELSE 1 END,
        ends = CASE WHEN ends > :now AND ends <= :now + :seconds + :delay THEN ends ELSE :now + :seconds END
    RETURNING events, ends
"""
SWEEP = "DELETE FROM windows WHERE ends <= :now"

logger = logging.getLogger(__name__)


class RateLimit(NamedTuple):
    """The maximum number of events in a window of this many seconds."""

    events_max: int
    seconds: int


class Usage(NamedTuple):
    """How many events remain in the current window, and in how many seconds the window ends."""

    remaining: int  # negative if the limit is exceeded
    reset_seconds: float

    @property
    def wait_seconds(self) -> float:
        """Return how long the client must wait: 0 if the limit is not exceeded."""
        return self.reset_seconds if self.remaining < 0 else 0.0


class RateLimits:
    """Counts events by name. Its file in RUNTIME_DIRECTORY is opened when the service starts, or by the first count."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock  # in seconds since 1970, for all processes
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None
        self.swept_at = 0.0
        self.exceeded: dict[str, float] = {}  # the ends of the windows whose limit is exceeded

    def count(self, name: str, limit: RateLimit) -> Usage:
        """Count one event, and return the usage. If counting fails, log a warning and return an unused limit."""
        now = self.clock()
        try:
            return self.count_event(name, limit, now=now)
        except (sqlite3.Error, OSError) as error:
            logger.warning("Rate limiting is disabled: %s", error)
            return Usage(limit.events_max, 0)

    def count_event(self, name: str, limit: RateLimit, *, now: float) -> Usage:
        connection = self.open()
        values = {"name": hash_name(name), "now": now, "seconds": limit.seconds, "delay": DELAY_SECONDS_MAX}
        with self.lock:
            if now - self.swept_at >= SWEEP_INTERVAL_SECONDS:
                self.sweep(connection, now=now)
            [(events, ends)] = connection.execute(COUNT, values).fetchall()
            if events > limit.events_max:
                self.exceeded[name] = ends
        return Usage(limit.events_max - events, ends - now)

    def sweep(self, connection: sqlite3.Connection, *, now: float) -> None:
        connection.execute(SWEEP, {"now": now})
        self.exceeded = {name: ends for name, ends in self.exceeded.items() if ends > now}
        self.swept_at = now

    def is_exceeded(self, name: str) -> bool:
        """Return whether `count` has found the limit exceeded in the current window. No event is counted."""
        ends = self.exceeded.get(name)
        return ends is not None and self.clock() < ends

    def open(self) -> sqlite3.Connection:
        """Return the connection to the file, which is created if it does not exist.

        :raises OSError: if RUNTIME_DIRECTORY or the file cannot be used
        :raises sqlite3.Error: if SQLite cannot use the file
        """
        with self.lock:
            if self.connection is None:
                self.connection = open_windows()
            return self.connection

    def close(self) -> None:
        with self.lock:
            if self.connection is not None:
                self.connection.close()
                self.connection = None


def open_windows() -> sqlite3.Connection:
    path = prepare_runtime_directory() / FILE_NAME
    connection = sqlite3.connect(
        path, timeout=time_limits.COUNTING.seconds, isolation_level=None, check_same_thread=False
    )
    try:
        create_table(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def create_table(connection: sqlite3.Connection) -> None:
    """Create the table if it does not exist. Wait for other processes: SQLite does not, for a change of the journal."""
    deadline = time.monotonic() + time_limits.COUNTING.seconds
    while True:
        try:
            connection.executescript(f"{JOURNAL}; {CREATE}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return


def hash_name(name: str) -> str:
    """Return what the file stores instead of a name, which may contain text that a client typed."""
    return hashlib.blake2b(name.encode(errors="replace"), digest_size=16).hexdigest()
