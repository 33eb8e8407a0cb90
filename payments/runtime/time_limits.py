"""The time limits within a request: shares of REQUEST_SECONDS_MAX, the limit of all its statements together."""

from typing import NamedTuple

from payments.conf import conf


class TimeLimit(NamedTuple):
    """A share of REQUEST_SECONDS_MAX."""

    share: float

    @property
    def seconds(self) -> float:
        return self.share * float(conf.REQUEST_SECONDS_MAX)

    @property
    def milliseconds(self) -> str:
        """Return the limit as PostgreSQL writes it: `2000ms`."""
        return f"{round(self.seconds * 1000)}ms"


# The comments have the seconds of the default, 2.5.

STATEMENT = TimeLimit(0.8)  # 2.0
LOCK = TimeLimit(0.4)  # 1.0: a statement waits this long for another writer
NEW_CONNECTION_MIN = TimeLimit(0.08)  # 0.2: with less time, a request does not connect
LATE_STATEMENT = TimeLimit(0.16)  # 0.4: for a statement that begins after the deadline, because this machine is busy

# With a second server: a request waits this long for a new connection; the first wait ends this much before the
# deadline; and a statement ends before that, even if the connection was new.
CONNECTION_BEFORE_FAILOVER = TimeLimit(0.12)  # 0.3
FAILOVER = TimeLimit(0.16)  # 0.4
STATEMENT_BEFORE_FAILOVER = TimeLimit(0.64)  # 1.6

FILTERS = TimeLimit(0.2)  # 0.5: a read with filters waits this long until an earlier one of its client has ended
SEARCH_BY_INDEX = TimeLimit(0.06)  # 0.15: the index alone finds most searches in this time
OPTIONAL_STATEMENT = TimeLimit(0.12)  # 0.3: a page can do without its result
COUNTING = TimeLimit(0.2)  # 0.5: a rate limit waits this long for other workers
LAST_USE = TimeLimit(0.04)  # 0.1: for noting when a key was last used
SUMMING_DAYS = TimeLimit(0.28)  # 0.7: the next request sums the remaining days
SUMMING_A_DAY = TimeLimit(0.52)  # 1.3: a request has other statements before and after
