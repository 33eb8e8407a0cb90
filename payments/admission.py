"""Decides which reads of payments may occupy a thread of the worker now."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from django.db import Error

from payments.database.round_trips import Outcome, Query, run_together
from payments.models import Access
from payments.runtime.database_errors import is_timeout
from payments.runtime.outages import Guard
from payments.runtime.process import process
from payments.runtime.servers import has_replica
from payments.runtime.shares import NoPlace
from payments.runtime.slots import paused


class PaymentsGuard(Guard):
    """The guard of a read of payments. With a replica, the circuit breakers decide which server responds.

    Then an outage is recorded only if the server works, but not with these payments: it has read the key
    (`has_read_key`), or it has ended the statement at its time limit.
    """

    has_read_key = False

    def is_outage(self, error: BaseException) -> bool:
        is_about_payments = self.has_read_key or is_timeout(error) or not has_replica()
        return is_about_payments and super().is_outage(error)


def reading(access: Access, *, has_filters: bool, can_wait: bool = True) -> AbstractContextManager[PaymentsGuard]:
    """Return a context manager for a read of payments.

    Reads with filters may take long. So those of one organization and mode use only their share of the places. Other
    reads take long only if the database does not respond, for example one server of a Citus cluster. Then reads of
    payments on that server fail fast.

    Entering raises NoPlace if too many reads with filters are in progress, and RecentOutage if another read of these
    payments has just failed after a long time.
    """
    return filtering(access, can_wait=can_wait) if has_filters else PaymentsGuard(process.outages, access)


@contextmanager
def filtering(access: Access, *, can_wait: bool) -> Iterator[PaymentsGuard]:
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
        key_failed = key_query is not None and isinstance(outcomes[0], Error)
        guard.has_read_key = key_query is not None and not key_failed
        guard.error = None if key_failed else first_error(outcomes)
    return outcomes


def first_error(outcomes: Sequence[Outcome]) -> Error | None:
    return next((outcome for outcome in outcomes if isinstance(outcome, Error)), None)
