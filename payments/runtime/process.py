"""The shared mutable state of one process. It is created on import and used by all threads."""

from collections.abc import Callable
from datetime import datetime

from payments.conf import conf
from payments.runtime.circuit_breaker import DataBreakers
from payments.runtime.hooks import Hooks
from payments.runtime.rate_limits import RateLimits
from payments.runtime.servers import PRIMARY, REPLICA, Replica, Result, Server, has_replica
from payments.runtime.shares import Shares
from payments.runtime.time_limits import Deadline


class Process:
    """The state that the threads of a process share: hooks, deadlines, circuit breakers, limits."""

    def __init__(self) -> None:
        self.hooks = Hooks()
        self.deadline = Deadline()
        self.primary = Server(PRIMARY)
        self.replica = Replica(REPLICA, primary=self.primary, on_lag_measured=self.hooks.replica_lag_measured)
        self.data_breakers: DataBreakers = {}
        self.rate_limits = RateLimits()
        self.shares = Shares(conf.WEB_THREADS)
        self.last_use_paused_until: dict[int, datetime] = {}  # by the ID of an API key

    def run_with_failover(self, query: Callable[[str], Result]) -> tuple[Result, Server]:
        """Run a query on the primary, or on the replica if the primary fails. Return its result and the server.

        If neither can run it, try the primary again without its circuit breaker.

        :raises Error: the primary's error, if no other server could run the query
        """
        if has_replica():
            if (result := self.primary.run(query)) is not None:
                return result, self.primary
            if self.replica.is_usable() and (result := self.replica.run(query)) is not None:
                return result, self.replica
        return query(PRIMARY), self.primary


process = Process()
