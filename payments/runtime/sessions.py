"""Database sessions: what one request at a time needs of the database, shared by the threads of a worker.

A request takes the session that was used last. So a worker needs few connections while the database responds fast, and
the server's processes for them find their data in the processor's caches. Sessions outlive the threads, which Granian
ends when they are idle.
"""

from threading import Lock
from time import monotonic

from django.db import connections

from payments.runtime.process import process

# The connections of a session that was idle for longer are closed: a firewall may have dropped them.
IDLE_SECONDS_MAX = 180.0


class Session:
    """A connection to each database, and the deadline that is enforced on them."""

    def __init__(self, sessions: "Sessions") -> None:
        self.sessions = sessions
        self.deadline = process.watchdog.new_deadline()
        self.connections = {alias: connections.create_connection(alias) for alias in connections}
        for connection in self.connections.values():
            connection.inc_thread_sharing()  # the threads use it one after the other
        self.used_at = monotonic()

    def begin(self) -> None:
        """Use the session for a request of this thread."""
        process.deadlines.database = self.deadline
        self.deadline.begin()
        process.thread_connections.begin(self.connections)
        for connection in self.connections.values():
            connection.close_if_unusable_or_obsolete()

    def end(self) -> None:
        """Give the session back."""
        process.thread_connections.end()
        self.deadline.end()
        self.used_at = monotonic()
        self.sessions.idle.append(self)

    def close(self) -> None:
        process.deadlines.database = self.deadline  # it forgets the connections
        for connection in self.connections.values():
            connection.close()


class Sessions:
    """The sessions that no request uses, in the order of their last use. There are no more than requests that run."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.idle: list[Session] = []

    def take(self) -> Session:
        """Return the session that was used last, or a new one."""
        expired: list[Session] = []
        with self.lock:
            while self.idle and monotonic() - self.idle[0].used_at > IDLE_SECONDS_MAX:
                expired.append(self.idle.pop(0))
            session = self.idle.pop() if self.idle else None
        for unused in expired:
            unused.close()
        return session or Session(self)
