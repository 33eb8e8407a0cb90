"""Decides which reads of payments may occupy a thread of the worker now."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from django.db import Error

from payments.database.prepared import PreparedStatements
from payments.database.round_trips import Outcome, Query, run_together
from payments.models import Access
from payments.runtime.outages import Guard
from payments.runtime.process import process
from payments.runtime.servers import has_replica


def reading(access: Access, *, has_filters: bool, can_wait: bool = True) -> AbstractContextManager[Guard]:
    """Return a context manager for a read of payments.

    Reads with filters may take long. So those of one organization and mode use only their share of the threads. Other
    reads take long only if the database does not respond, for example one server of a Citus cluster. Then reads of
    payments on that server fail fast, unless there is a replica: its circuit breakers decide which server responds.

    Entering raises NoPlace if too many reads with filters are in progress, and RecentOutage if another read of these
    payments has just failed after a long time.
    """
    return filtering(access, can_wait=can_wait) if has_filters else guard(access)


def guard(access: Access, *, timeouts_count: bool = True) -> Guard:
    """Return the guard of an outage of these payments. With a replica it only holds the error of the read."""
    return process.outages.guard(access, is_on=not has_replica(), timeouts_count=timeouts_count)


@contextmanager
def filtering(access: Access, *, can_wait: bool) -> Iterator[Guard]:
    if can_wait:
        process.turns.end()
    with process.filter_share.place(access, can_wait=can_wait), guard(access, timeouts_count=False) as guarded:
        yield guarded


def run_admitted(
    statements: PreparedStatements,
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
    with reading(access, has_filters=any(query.has_filters for query in queries), can_wait=can_wait) as guarded:
        outcomes = run_together(statements, [*([key_query] if key_query else []), *queries])
        if key_query is None or not isinstance(outcomes[0], Error):  # otherwise no data can be read
            guarded.error = next((outcome for outcome in outcomes if isinstance(outcome, Error)), None)
    return outcomes
