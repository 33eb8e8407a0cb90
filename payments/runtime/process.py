"""The shared mutable state of one process. It is created on import and used by all threads.

Write `process.hooks` where the hooks are needed, and do not store the attribute elsewhere. Then a test can replace it:
`monkeypatch.setattr(process, "hooks", Hooks())`.
"""

import os
from datetime import datetime
from typing import NamedTuple

from django.conf import settings

from payments.runtime import processors
from payments.runtime.byte_locks import ByteLocks
from payments.runtime.deadlines import ThreadDeadlines, Watchdog
from payments.runtime.filter_places import FilterPlaces
from payments.runtime.gate import Gate
from payments.runtime.hooks import Hooks
from payments.runtime.log_limit import LogLimit
from payments.runtime.outages import Outages
from payments.runtime.pace import Pace
from payments.runtime.password_queue import PasswordQueue
from payments.runtime.rate_limits import RateLimits
from payments.runtime.recent import RecentValues
from payments.runtime.servers import PRIMARY, REPLICA, Replica, Server
from payments.runtime.shares import Share
from payments.runtime.thread_connections import ThreadConnections
from payments.runtime.turns import Turns

# PostgreSQL starts a process for each connection.
CONNECTION_INTERVAL_SECONDS = 0.01

KNOWN_KEYS_MAX = 5000

# Half of the threads that scripts/start adds for requests that wait.
FILTERS_WAITING_MAX = 32


class KnownKey(NamedTuple):
    """An API key, as this process last read it. It gives no access: each request reads its key in the database."""

    id: int
    organization_id: int
    mode: str


class Process:
    """The state that the threads of a process share: hooks, deadlines, circuit breakers, limits."""

    def __init__(self) -> None:
        self.hooks = Hooks()
        self.watchdog = Watchdog()
        self.deadlines = ThreadDeadlines(self.watchdog)
        self.thread_connections = ThreadConnections()
        self.primary = Server(PRIMARY)
        self.replica = Replica(
            REPLICA,
            primary=self.primary,
            on_lag_measured=self.report_lag,
        )
        self.rate_limits = RateLimits()
        self.connection_pace = Pace(CONNECTION_INTERVAL_SECONDS)
        self.outages = Outages()
        share = max(1, settings.WEB_THREADS // 2)
        self.filter_places = FilterPlaces(on_machine=max(1, settings.WEB_WORKERS // 2), waiting_max=FILTERS_WAITING_MAX)
        self.page_share = Share(places_max=share)
        self.export_share = Share(places_max=1)  # Python computes it, so it competes with all other threads
        self.known_keys: RecentValues[str, KnownKey] = RecentValues(KNOWN_KEYS_MAX)  # by the digest of the key
        self.password_queue = PasswordQueue()
        self.gate = Gate(settings.WEB_THREADS)
        self.turns = Turns()
        self.refused_hosts = LogLimit()
        self.processor_locks = ByteLocks(processors.FILE_NAME)
        self.last_use_paused_until: dict[int, datetime] = {}  # by the ID of an API key

    def report_lag(self, seconds: float) -> None:
        """Call the hooks that are registered now; a test may have replaced `hooks`."""
        self.hooks.replica_lag_measured(seconds)


process = Process()
os.register_at_fork(after_in_child=process.watchdog.forget_thread)
