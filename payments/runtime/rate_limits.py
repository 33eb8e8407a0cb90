"""How often something may happen: counted exactly, for all of a machine's workers, in a file that they share.

The database is not asked: a limit holds while it is down, and costs it nothing.
"""

import hashlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from payments.runtime.directory import prepare_runtime_directory
from payments.runtime.files import find_identity

FILE_NAME = "limits.sqlite3"
SWEPT_EVERY_SECONDS = 60
BUSY_SECONDS_MAX = 0.5
TRIED_EVERY_SECONDS = 0.005
WARNED_EVERY_SECONDS = 60

# A worker reads the clock, and then waits its turn to count: for so long the moments of events may be out of order.
DELAY_SECONDS_MAX = 5

# A window begins with the first event after the one before has ended. A clock that was set back further than
# DELAY_SECONDS_MAX begins a new window, so that none lasts much longer.
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
FIND = "SELECT events, ends FROM windows WHERE name = :name AND ends > :now AND ends <= :now + :seconds + :delay"
SWEEP = "DELETE FROM windows WHERE ends <= :now"

logger = logging.getLogger(__name__)


class Limit(NamedTuple):
    """At most so many events within so many seconds."""

    events_max: int
    seconds: int


class Usage(NamedTuple):
    """What is left of a limit, and in how many seconds all of it is there again."""

    remaining: int  # negative where there were too many events
    reset_seconds: float

    @property
    def wait_seconds(self) -> float:
        """Return for how long nothing is allowed: 0 where something is."""
        return self.reset_seconds if self.remaining < 0 else 0.0


class Counter:
    """Counts events by name, in a file."""

    def __init__(self, path: Path) -> None:
        path.touch(mode=0o600)
        self.path, self.file = path, find_identity(path)
        self.connection = sqlite3.connect(path, timeout=BUSY_SECONDS_MAX, isolation_level=None, check_same_thread=False)
        # What is lost with the machine's power would have been forgotten soon.
        prepare(self.connection)
        self.lock = threading.Lock()
        self.swept_at = 0.0

    @property
    def is_shared(self) -> bool:
        """Tell whether the others find the file under its name: somebody may have cleared it away."""
        return self.file == find_identity(self.path)

    def count(self, name: str, limit: Limit, *, now: float) -> Usage:
        """Count one more event; `now` is in seconds since 1970, the same for all processes."""
        with self.lock:
            if now - self.swept_at >= SWEPT_EVERY_SECONDS:
                self.connection.execute(SWEEP, {"now": now})
                self.swept_at = now
            return self.ask(COUNT, name, limit, now)

    def find(self, name: str, limit: Limit, *, now: float) -> Usage:
        """Return how it stands, without an event."""
        with self.lock:
            return self.ask(FIND, name, limit, now)

    def close(self) -> None:
        with self.lock:
            self.connection.close()

    def ask(self, sql: str, name: str, limit: Limit, now: float) -> Usage:
        values = {"name": stored(name), "now": now, "seconds": limit.seconds, "delay": DELAY_SECONDS_MAX}
        rows = self.connection.execute(sql, values).fetchall()
        events, ends = rows[0] if rows else (0, now)
        return Usage(limit.events_max - events, ends - now)


def prepare(connection: sqlite3.Connection) -> None:
    """Make the table, if it is not there; of several who begin at once, SQLite lets but one choose the journal."""
    end = time.monotonic() + BUSY_SECONDS_MAX
    while True:
        try:
            connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; {CREATE}")
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(TRIED_EVERY_SECONDS)
        else:
            return


def stored(name: str) -> str:
    """Return what is kept of a name, which may be whatever somebody typed."""
    return hashlib.blake2b(name.encode(errors="replace"), digest_size=16).hexdigest()


class Counting:
    """What this process counts with: a file that is gone or damaged is replaced, and one that fails keeps nobody out.

    What a file has counted would have been forgotten soon.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counter: Counter | None = None
        self.warned_at: float | None = None

    def ask(self, ask: Callable[..., Usage], name: str, limit: Limit, *, now: float) -> Usage:
        try:
            return ask(self.shared_counter(), name, limit, now=now)
        except (sqlite3.Error, OSError) as error:
            self.warn(error, now=now)
            if type(error) is sqlite3.DatabaseError:  # those derived from it are no damage
                with suppress(OSError):
                    self.remove_file()
            return Usage(limit.events_max, 0)

    def shared_counter(self) -> Counter:
        with self.lock:
            if self.counter is not None and not self.counter.is_shared:
                self.close()
            if self.counter is None:
                self.counter = Counter(prepare_runtime_directory() / FILE_NAME)
            return self.counter

    def close(self) -> None:
        if self.counter is not None:
            self.counter.close()
            self.counter = None

    def remove_file(self) -> None:
        for file in prepare_runtime_directory().glob(f"{FILE_NAME}*"):
            file.unlink(missing_ok=True)

    def warn(self, error: Exception, *, now: float) -> None:
        """Say it now and then: every request meets the same."""
        if self.warned_at is None or not 0 <= now - self.warned_at < WARNED_EVERY_SECONDS:
            self.warned_at = now
            logger.warning("Limits are not kept: %s", error)


counting = Counting()


def count(name: str, limit: Limit) -> Usage:
    """Count one more event, now. Where that cannot be done nobody is kept out: all of the limit is left."""
    return counting.ask(Counter.count, name, limit, now=time.time())


def find(name: str, limit: Limit) -> Usage:
    """Return how it stands now, without an event; where that cannot be told, all of the limit is left."""
    return counting.ask(Counter.find, name, limit, now=time.time())
