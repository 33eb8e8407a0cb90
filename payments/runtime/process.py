"""The shared mutable state of one process. It is created on import and used by all threads.

Write `process.hooks` where the hooks are needed, and do not store the attribute elsewhere: a test can replace it.
"""

from datetime import datetime

from payments.conf import conf
from payments.runtime.circuit_breaker import DataBreakers
from payments.runtime.hooks import Hooks
from payments.runtime.rate_limits import RateLimits
from payments.runtime.servers import PRIMARY, REPLICA, Replica, Server
from payments.runtime.shares import Shares
from payments.runtime.time_limits import Deadline


class Process:
    """The state that the threads of a process share: hooks, deadlines, circuit breakers, limits."""

    def __init__(self) -> None:
        self.hooks = Hooks()
        self.deadline = Deadline()
        self.primary = Server(PRIMARY)
        self.replica = Replica(REPLICA, primary=self.primary, on_lag_measured=self.report_lag)
        self.data_breakers: DataBreakers = {}
        self.rate_limits = RateLimits()
        self.shares = Shares(conf.WEB_THREADS)
        self.last_use_paused_until: dict[int, datetime] = {}  # by the ID of an API key

    def report_lag(self, seconds: float) -> None:
        """Call the hooks that are registered now; a test may have replaced `hooks`."""
        self.hooks.replica_lag_measured(seconds)


process = Process()
