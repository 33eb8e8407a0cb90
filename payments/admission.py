"""Decides which reads of payments may occupy a thread of the worker now."""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from django.db import Error

from payments.database.round_trips import Outcome, Query, run_together
from payments.models import Access
from payments.runtime.circuit_breaker import Guard
from payments.runtime.database_errors import is_timeout
from payments.runtime.process import process
from payments.runtime.servers import PRIMARY, has_replica


class PaymentsOf(NamedTuple):
    """The payments of an organization and mode on the server with the alias `using`."""

    access: Access
    using: str

    def __str__(self) -> str:
        return str(self.access) if self.using == PRIMARY else f"{self.access} on the replica"


class PaymentsGuard(Guard):
    """The guard of a read of payments. With a replica, the circuit breakers of the servers decide which one responds.

    Then an outage is recorded only if the server works, but not with these payments: it has read the key
    (`has_read_key`), or it has ended the statement at its time limit.
    """

    has_read_key = False

    def is_outage(self, error: BaseException) -> bool:
        is_about_payments = self.has_read_key or is_timeout(error) or not has_replica()
        return is_about_payments and super().is_outage(error)


def reading(
    access: Access, *, has_filters: bool, client: Hashable, can_wait: bool = True, using: str = PRIMARY
) -> AbstractContextManager[PaymentsGuard]:
    """Return a context manager for a read of payments by a client from the server with the alias `using`.

    Reads with filters may take long, so each client has a share of the threads for them. Other reads take long only if
    the database does not respond, for example one server of a Citus cluster. Then reads of payments on that server fail
    fast. Reads from a replica go on while those from the primary fail.

    Entering raises NoPlace if the client uses its share, and CircuitOpen if another read of these payments from this
    server has just failed after a long time.
    """
    if has_filters:
        return filtering(access, client=client, can_wait=can_wait, using=using)
    return PaymentsGuard(process.data_breakers, PaymentsOf(access, using))


@contextmanager
def filtering(access: Access, *, client: Hashable, can_wait: bool, using: str) -> Iterator[PaymentsGuard]:
    with (
        process.shares.filters(client, can_wait=can_wait),
        PaymentsGuard(process.data_breakers, PaymentsOf(access, using), timeouts_count=False) as guard,
    ):
        yield guard


def run_admitted(
    access: Access,
    queries: Sequence[Query],
    *,
    client: Hashable,
    key_query: Query | None = None,
    can_wait: bool = True,
) -> list[Outcome]:
    """Run queries for the payments of an access in one round trip, after the query for the key if there is one.

    :raises NoPlace, CircuitOpen: see `reading`
    :raises Error: a statement could not be prepared
    """
    has_filters = bool(queries) and queries[0].has_filters  # they are the queries of one list
    with reading(access, has_filters=has_filters, client=client, can_wait=can_wait) as guard:
        outcomes = run_together([key_query, *queries] if key_query else queries)
        key_failed = key_query is not None and isinstance(outcomes[0], Error)
        guard.has_read_key = key_query is not None and not key_failed
        guard.error = None if key_failed else next((error for error in outcomes if isinstance(error, Error)), None)
    return outcomes
