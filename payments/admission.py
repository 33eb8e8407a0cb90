"""Decides which reads of payments may occupy a thread of the worker now."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from django.db import Error

from payments.database.round_trips import Outcome, Query, run_together
from payments.models import Access
from payments.runtime.outages import Guard
from payments.runtime.process import process
from payments.runtime.servers import has_replica
from payments.runtime.shares import NoPlace
from payments.runtime.slots import paused


def reading(access: Access, *, has_filters: bool, can_wait: bool = True) -> AbstractContextManager[Guard]:
    """Return a context manager for a read of payments.

    Reads with filters may take long. So those of one organization and mode use only their share of the places. Other
    reads take long only if the database does not respond, for example one server of a Citus cluster. Then reads of
    payments on that server fail fast, unless there is a replica: its circuit breakers decide which server responds.

    Entering raises NoPlace if too many reads with filters are in progress, and RecentOutage if another read of these
    payments has just failed after a long time.
    """
    return filtering(access, can_wait=can_wait) if has_filters else PaymentsGuard(process.outages, access)


class PaymentsGuard(Guard):
    """The guard of a read of payments. With a replica, it records no outage."""

    def is_outage(self, error: BaseException) -> bool:
        return super().is_outage(error) and not has_replica()


@contextmanager
def filtering(access: Access, *, can_wait: bool) -> Iterator[Guard]:
    places = process.filter_places
    if not places.acquire(access):
        if not can_wait:
            raise NoPlace
        with paused():
            places.wait(access)
    try:
        with PaymentsGuard(process.outages, access, timeouts_count=False) as guard:
            process.turns.end()  # a read with filters may take long
            yield guard
    finally:
        places.release(access)


def run_admitted(
    access: Access,
    queries: Sequence[Query],
    *,
    key_query: Query | None = None,
    can_wait: bool = True,
) -> list[Outcome]:
    """Run queries for the payments of an access in one round trip, after the query for the key if there is one.

    :raises NoPlace, RecentOutage: see `reading`
    :raises Error: a statement could not be prepared
    """
    has_filters = bool(queries) and queries[0].has_filters  # they are the queries of one list
    with reading(access, has_filters=has_filters, can_wait=can_wait) as guard:
        outcomes = run_together([key_query, *queries] if key_query else queries)
        for outcome in outcomes:
            if isinstance(outcome, Error):
                if outcome is not outcomes[0] or key_query is None:  # without the key, no data can be read
                    guard.error = outcome
                break
    return outcomes
