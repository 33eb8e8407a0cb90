"""Circuit breakers: after a failure, requests fail fast instead of waiting for the same failure again."""

import logging
from collections.abc import Callable, Hashable
from threading import Lock
from time import monotonic
from typing import TypeAlias

from django.db import Error, OperationalError

from payments.conf import conf
from payments.runtime.database_errors import is_locked, is_outage, is_timeout

logger = logging.getLogger(__name__)


class CircuitOpen(OperationalError):
    """The database has just failed to respond to another request."""


class CircuitBreaker:
    """Skips a server, or some data, for a while after a failure. Then one request at a time tries again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = Lock()
        self.retry_at = 0.0  # a time of time.monotonic(); 0 while the circuit breaker is closed

    @property
    def is_open(self) -> bool:
        return bool(self.retry_at) and monotonic() < self.retry_at

    def admits(self) -> bool:
        """Return whether the request may use the server. While the circuit breaker is open, this starts a trial."""
        if not self.retry_at:
            return True
        with self.lock:
            now = monotonic()
            if now < self.retry_at:
                return False
            self.retry_at = now + conf.REQUEST_SECONDS_MAX  # a request that tries again has ended then
            return True

    def open(self, error: BaseException, *, seconds: float) -> None:
        if not self.retry_at:
            logger.warning("Circuit breaker of %s opened: %s", self.name, error)
        self.retry_at = monotonic() + seconds

    def close(self) -> None:
        if self.retry_at:
            self.retry_at = 0.0
            logger.warning("Circuit breaker of %s closed.", self.name)


# The open circuit breakers of data, by the name of the data.
DataBreakers: TypeAlias = dict[Hashable, CircuitBreaker]


class Guard:
    """A context manager that reads some data behind circuit breakers, which a slow failure opens.

    `timeouts` names the data that fails when PostgreSQL ends the statement at its time limit, and `outages` the data
    that fails when the server does not respond. None: such a failure opens nothing. A lock is a failure of the smaller
    data of the two.

    `probe` is a cheap read of the same data. If it succeeds after the failure, the read itself was slow, and nothing
    opens: a client must not end the reads of others by one that takes too long.

    Entering raises CircuitOpen while one of the two circuit breakers is open.
    """

    def __init__(
        self,
        breakers: DataBreakers,
        *,
        outages: Hashable,
        timeouts: Hashable,
        probe: Callable[[], object] | None = None,
    ) -> None:
        self.breakers = breakers
        self.probe = probe
        self.names = (timeouts, outages) if timeouts != outages else (outages,)

    def __enter__(self) -> None:
        if self.breakers:
            breakers = list(filter(None, map(self.breakers.get, self.names)))
            # Only if none is open, a request starts a trial.
            if any(breaker.is_open for breaker in breakers) or not all(breaker.admits() for breaker in breakers):
                raise CircuitOpen("The database has just failed to respond to another request.")
        self.started_at = monotonic()

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        failed = None if error is None else self.failed_data(error)
        if error is not None and failed is not None and self.probe_succeeds():
            failed = None
        if error is not None and failed is not None:
            breaker = self.breakers.setdefault(failed, CircuitBreaker(str(failed)))
            breaker.open(error, seconds=conf.OUTAGE_OPEN_SECONDS)
        if self.breakers:
            for name in self.names:
                if name != failed and (breaker_to_close := self.breakers.pop(name, None)):
                    breaker_to_close.close()

    def probe_succeeds(self) -> bool:
        try:
            return self.probe is not None and bool(self.probe())
        except Error:
            return False

    def failed_data(self, error: BaseException) -> Hashable | None:
        """Return the name of the data that has failed; None for another error, or a fast one."""
        if monotonic() - self.started_at < conf.OUTAGE_SECONDS_MIN or not is_outage(error):
            return None
        timeouts, outages = self.names[0], self.names[-1]
        if is_locked(error):
            return outages if timeouts is None else timeouts
        return timeouts if is_timeout(error) else outages
