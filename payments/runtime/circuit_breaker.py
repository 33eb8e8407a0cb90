"""Circuit breakers: after a failure, requests fail fast instead of waiting for the same failure again."""

import logging
from collections.abc import Hashable
from threading import Lock
from time import monotonic
from typing import Self, TypeAlias

from django.db import OperationalError

from payments.conf import conf
from payments.runtime.database_errors import is_outage, is_timeout

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
        """Skip the server for so many seconds."""
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
    """A context manager that reads some data behind a circuit breaker, which a slow outage opens.

    `timeouts_count`: a statement that PostgreSQL ends at its time limit is an outage, because it is usually fast.
    `error` is the error of the read; set it if the block does not raise it.

    Entering raises CircuitOpen while the circuit breaker is open.
    """

    def __init__(self, breakers: DataBreakers, name: Hashable, *, timeouts_count: bool = True) -> None:
        self.breakers = breakers
        self.name = name
        self.timeouts_count = timeouts_count
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        breaker = self.breakers.get(self.name)
        if breaker is not None and not breaker.admits():
            raise CircuitOpen("The database has just failed to respond to another request.")
        self.started_at = monotonic()
        return self

    def __exit__(self, _type: object, raised: BaseException | None, _traceback: object) -> None:
        error = raised or self.error
        if error is not None and monotonic() - self.started_at >= conf.OUTAGE_SECONDS_MIN and self.is_outage(error):
            breaker = self.breakers.setdefault(self.name, CircuitBreaker(str(self.name)))
            breaker.open(error, seconds=conf.OUTAGE_OPEN_SECONDS)
        elif closing := self.breakers.pop(self.name, None):
            closing.close()

    def is_outage(self, error: BaseException) -> bool:
        return is_outage(error) and (self.timeouts_count or not is_timeout(error))
