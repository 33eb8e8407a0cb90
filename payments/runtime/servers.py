"""The database servers, as this process finds them: the primary, and a replica on which lists may be read.

All that is written, and the keys, are read where they are written: on the primary. Where it is away, a replica is asked
for what it knows.
"""

import logging
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections

from payments.runtime import hooks
from payments.runtime.database_errors import is_outage, ran_out_of_time

PRIMARY = DEFAULT_DB_ALIAS
REPLICA = "replica"

# After a failure a server is passed over for ten times as long as that took, within bounds.
PAUSE_SECONDS_MIN = 1.0
PAUSE_SECONDS_MAX = 5.0
PAUSE_FOR_EACH_SECOND = 10

LOOKS_EVERY_SECONDS = 1.0
TRIES_EVERY_SECONDS = 60.0
POSITIONS_KEPT = 600

# How far a server is in the log of all changes (WAL), in bytes.
POSITION = """
    SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END
            - '0/0')::bigint
"""

Answer = TypeVar("Answer")

logger = logging.getLogger(__name__)


class Server:
    """A server that may be away: then it is passed over for a while."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.asked_again_at = 0.0
        self.is_missed = False

    @property
    def is_away(self) -> bool:
        return monotonic() < self.asked_again_at

    def ask(self, question: Callable[[str], Answer], *, is_quick: bool = False) -> Answer | None:
        """Return what the server of this alias answers; None where it is away, or turns out to be.

        What runs out of time would take as long on another, unless it is quick on a server that is well.
        """
        begun_at = monotonic()
        if begun_at < self.asked_again_at:
            return None
        try:
            answer = question(self.alias)
        except Error as error:
            if not is_outage(error) or (ran_out_of_time(error) and not is_quick):
                raise
            self.pass_over(begun_at=begun_at, why=error)
            return None
        if self.is_missed:
            self.is_missed = False
            logger.warning("The %s answers again.", self)
        return answer

    def pass_over(self, *, begun_at: float, why: Error) -> None:
        now = monotonic()
        seconds = (now - begun_at) * PAUSE_FOR_EACH_SECOND
        self.asked_again_at = now + min(max(seconds, PAUSE_SECONDS_MIN), PAUSE_SECONDS_MAX)
        if not self.is_missed:
            self.is_missed = True
            logger.warning("The %s is passed over until it answers again: %s", self, why)

    def __str__(self) -> str:
        return "primary" if self.alias == PRIMARY else self.alias


class Position(NamedTuple):
    """How far the primary was, and when."""

    bytes: int
    at: float  # of time.monotonic


class Replica(Server):
    """A server that follows the primary: asked only while it keeps up."""

    def __init__(self, alias: str) -> None:
        super().__init__(alias)
        self.positions: list[Position] = []  # the primary's, the latest last
        self.looks_again_at = 0.0
        self.lag_seconds = 0.0

    def keeps_up(self) -> bool:
        """Tell whether it is there, and no more behind than REPLICA_LAG_SECONDS_MAX; looked at once a second."""
        now = monotonic()
        if now >= self.looks_again_at and now >= self.asked_again_at:
            self.looks_again_at = now + LOOKS_EVERY_SECONDS
            try:
                self.look(now)
            except Error as error:  # some services lack functions of PostgreSQL's
                self.looks_again_at = now + TRIES_EVERY_SECONDS
                logger.warning("How far behind the replica is cannot be told: %s", error)
        return now >= self.asked_again_at and self.lag_seconds <= settings.REPLICA_LAG_SECONDS_MAX

    def look(self, now: float) -> None:
        """See how far both servers are. Of several replicas, one that is too far behind makes room for another."""
        reached = primary.ask(position, is_quick=True)
        if reached is not None:
            self.note(Position(reached, now))
        seen = self.ask(position, is_quick=True)
        if seen is None:
            return
        was_behind = self.lag_seconds > settings.REPLICA_LAG_SECONDS_MAX
        self.lag_seconds = self.lag(seen)
        hooks.set_replica_lag(self.lag_seconds)
        if self.lag_seconds > settings.REPLICA_LAG_SECONDS_MAX:
            connections[self.alias].close()
            if not was_behind:
                logger.warning("The replica is passed over while it lags: %.0f s or more", self.lag_seconds)

    def note(self, reached: Position) -> None:
        if self.positions and reached.bytes < self.positions[-1].bytes:
            self.positions.clear()  # another server is the primary now, which has not seen all that the last one had
        self.positions = [*self.positions[-POSITIONS_KEPT:], reached]

    def lag(self, seen: int) -> float:
        """Return for how many seconds at least, when the primary last answered, it had had something that is not seen.

        No clock of another machine's is asked, and a primary that is idle, or away, makes nobody lag.
        """
        behind = (position for position in self.positions if position.bytes > seen)
        return next((self.positions[-1].at - position.at for position in behind), 0.0)


def position(alias: str) -> int:
    with connections[alias].cursor() as cursor:
        cursor.execute(POSITION)
        (found,) = cursor.fetchone()
    return int(found or 0)


def has_replica() -> bool:
    return REPLICA in connections.settings


def ask_either(question: Callable[[str], Answer]) -> tuple[Answer, Server]:
    """Ask the primary, and a replica where that is away; return the answer, and whose it is.

    :raises Error: that of the primary, where there is no other to ask
    """
    if has_replica():
        if (answer := primary.ask(question)) is not None:
            return answer, primary
        if replica.keeps_up() and (answer := replica.ask(question)) is not None:
            return answer, replica
    return question(PRIMARY), primary


primary = Server(PRIMARY)
replica = Replica(REPLICA)
