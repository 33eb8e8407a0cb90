"""The primary and the replica, each behind a circuit breaker.

API keys are read from the primary, and everything is written to it. Payments can be read from a replica. While the
primary fails, API keys are read from the replica too.
"""

import logging
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from django.db import DEFAULT_DB_ALIAS, Error, connections

from payments.conf import conf
from payments.runtime.circuit_breaker import CircuitBreaker, CircuitOpen
from payments.runtime.database_errors import is_outage, is_timeout

PRIMARY = DEFAULT_DB_ALIAS
REPLICA = "replica"

# A circuit breaker stays open for ten times as long as the failed query took, within these limits.
OPEN_SECONDS_MIN = 1.0
OPEN_SECONDS_MAX = 5.0
OPEN_SECONDS_PER_SECOND = 10

LAG_INTERVAL_SECONDS = 1.0
LAG_RETRY_SECONDS = 60.0  # after an error
POSITIONS_MAX = 600  # one for each second; REPLICA_LAG_SECONDS_MAX is at most 300

# The server's position in the write-ahead log (WAL), in bytes.
WAL_POSITION = """
    SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END
            - '0/0')::bigint
"""

Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class Server:
    """A database server behind a circuit breaker."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.breaker = CircuitBreaker("the primary" if alias == PRIMARY else "the replica")

    def run(self, query: Callable[[str], Result], *, timeout_opens: bool = False) -> Result | None:
        """Call `query` with the server's alias and return its result; None if the circuit breaker is open or opens.

        A query that times out on one server would usually time out on another, so its error is raised.
        `timeout_opens` is for queries that are fast on a healthy server: their timeout opens the circuit breaker.

        :raises Error: the query is invalid, or timed out without `timeout_opens`
        """
        if not self.breaker.admits():
            return None
        started_at = monotonic()
        try:
            result = query(self.alias)
        except CircuitOpen:
            return None  # the server was not asked
        except Error as error:
            if not is_outage(error) or (is_timeout(error) and not timeout_opens):
                self.breaker.close()
                raise
            seconds = (monotonic() - started_at) * OPEN_SECONDS_PER_SECOND
            self.breaker.open(error, seconds=min(max(seconds, OPEN_SECONDS_MIN), OPEN_SECONDS_MAX))
            return None
        self.breaker.close()
        return result


class WalPosition(NamedTuple):
    """The position of the primary in its write-ahead log at a moment."""

    bytes: int
    measured_at: float  # a time of time.monotonic()


class ThreadLag(threading.local):
    """The replication lag of the replica that a thread is connected to. Threads may be connected to different ones."""

    seconds = 0.0
    measure_at = 0.0  # a time of time.monotonic()


class Replica(Server):
    """A server that follows the primary. Lists are read from it unless it lags too far behind."""

    def __init__(self, alias: str, *, primary: Server, on_lag_measured: Callable[[float], None]) -> None:
        super().__init__(alias)
        self.primary = primary
        self.on_lag_measured = on_lag_measured  # gets the lag in seconds
        self.positions: list[WalPosition] = []  # of the primary, oldest first
        self.measuring_primary = threading.Lock()
        self.lag = ThreadLag()

    @property
    def is_lagging(self) -> bool:
        return bool(self.lag.seconds > conf.REPLICA_LAG_SECONDS_MAX)

    def is_usable(self) -> bool:
        """Return whether lists can be read from the replica. Measures the replication lag once a second."""
        now = monotonic()
        if now >= self.lag.measure_at and not self.breaker.is_open:
            self.lag.measure_at = now + LAG_INTERVAL_SECONDS
            try:
                self.measure_lag(now)
            except Error as error:  # some hosted PostgreSQL services lack a function
                self.lag.measure_at = now + LAG_RETRY_SECONDS
                logger.warning("Cannot determine replication lag: %s", error)
        return not self.breaker.is_open and not self.is_lagging

    def measure_lag(self, now: float) -> None:
        """Query the positions of primary and replica, and store and report the lag.

        If the replica lags too far behind, the connection to it is closed. The next connection may lead to another
        replica.
        """
        self.measure_primary(now)
        replayed_bytes = self.run(read_wal_position, timeout_opens=True)
        if replayed_bytes is None:
            return
        was_lagging = self.is_lagging
        self.lag.seconds = self.compute_lag(replayed_bytes)
        self.on_lag_measured(self.lag.seconds)
        if self.is_lagging:
            connections[self.alias].close()
            if not was_lagging:
                logger.warning("The replica lags by %.0f s or more. The primary serves its reads.", self.lag.seconds)

    def measure_primary(self, now: float) -> None:
        """Query and store the position of the primary, unless another thread is doing so."""
        if not self.measuring_primary.acquire(blocking=False):
            return
        try:
            position = self.primary.run(read_wal_position, timeout_opens=True)
            if position is not None:
                self.record_position(WalPosition(position, now))
        finally:
            self.measuring_primary.release()

    def record_position(self, position: WalPosition) -> None:
        if self.positions and position.bytes < self.positions[-1].bytes:
            self.positions.clear()  # after a failover the new primary may lack the end of the old primary's log
        self.positions = [*self.positions[-POSITIONS_MAX:], position]

    def compute_lag(self, replayed_bytes: int) -> float:
        """Return the seconds between the first measured position that the replica lacks and the last measured position.

        The true lag is at least this long.

        It uses only this machine's clock. A replica that has replayed everything does not lag, however long ago the
        primary's last change is.
        """
        missing = (position for position in self.positions if position.bytes > replayed_bytes)
        return next((self.positions[-1].measured_at - position.measured_at for position in missing), 0.0)


class PrimaryRouter:
    """Runs migrations on the primary only. `payments.listing.routing` chooses the server for lists."""

    def allow_migrate(self, db: str, _app_label: str, **_hints: Any) -> bool:
        return db == PRIMARY


def read_wal_position(alias: str) -> int:
    with connections[alias].cursor() as cursor:
        cursor.execute(WAL_POSITION)
        (position,) = cursor.fetchone()
    return int(position or 0)


def has_replica() -> bool:
    return REPLICA in connections
