"""Reads the content of a response from the primary or from a replica, behind circuit breakers."""

from collections.abc import Hashable
from contextlib import nullcontext
from functools import lru_cache

from payments.database.statements import Statement, compile_queryset
from payments.listing.content import Content, Query, state_of_access
from payments.listing.query import newest_payment_query
from payments.models import Access
from payments.runtime.circuit_breaker import Guard
from payments.runtime.process import process
from payments.runtime.servers import PRIMARY, REPLICA, has_replica


def guard(access: Access, using: str, *, timeouts_count: bool = True) -> Guard:
    """Return the guard of a read of payments. With a replica, the servers have circuit breakers for outages."""
    payments = f"{access}" if using == PRIMARY else f"{access} on the replica"
    return Guard(
        process.data_breakers,
        outages=None if has_replica() else payments,
        timeouts=payments if timeouts_count else None,
        probe=lambda: newest_payment_query().read(access, using),
    )


def server_for_lists() -> str:
    """Return the alias of the server that lists are read from: the replica, while it keeps up with the primary."""
    if process.replica.is_usable():
        return REPLICA
    process.hooks.replica_skipped("away" if process.replica.breaker.is_open else "lag")
    return PRIMARY


def read_content(query: Query, access: Access, *, using: str, revision: int | None, client: Hashable) -> Content:
    """Return the content for a client from the server with the alias `using`.

    Reads with filters may take long, so each client has a share of the threads for them. Other reads take long only if
    the database does not respond, for example one server of a Citus cluster. Then reads of payments on that server fail
    fast. Reads from a replica go on while those from the primary fail.

    `revision` is that of the payments on the primary when the key was read; None if it is unknown. Only a replica needs
    it.

    :raises NoPlace: the client uses its share
    :raises CircuitOpen: another read of these payments from this server has just failed after a long time
    """
    share = process.shares.filters(client) if query.has_filters else nullcontext()
    with share, guard(access, using, timeouts_count=not query.has_filters):
        if using == PRIMARY:
            return query.read(access)
        return read_replica(query, access, revision) or read_without_primary(query, access)


def read_replica(query: Query, access: Access, revision: int | None) -> Content | None:
    """Return the content of a replica that has the primary's revision; else the content of the primary.

    With the same revision, a replica's page equals the page that the primary would have returned when the key was
    checked. Therefore the pages of one walk may come from any server. Returns None if the primary is unavailable, or
    was unavailable when the key was checked.
    """
    if revision is None:
        return None
    content = process.replica.run(lambda alias: query.read(access, alias), timeout_opens=not query.has_filters)
    if content is not None and content.revision == revision:
        return content
    process.hooks.replica_skipped("away" if process.replica.breaker.is_open else "behind")
    return process.primary.run(lambda _alias: query.read(access))


def read_without_primary(query: Query, access: Access) -> Content:
    """Return the content of a replica while the primary is unavailable.

    Only the primary can prove that it does not know the start of a page.

    :raises Error: the error of the primary, if the replica does not know the start of the page
    """
    content = process.replica.run(lambda alias: query.read(access, alias))
    if content is not None and not query.lacks_start(content):
        return content
    return query.read(access)  # the primary raises its error, unless it has recovered


def read_revision(access: Access) -> int | None:
    """Return the revision of the payments of an access on the primary; None if the primary has just failed.

    Citus distributes revisions, but not keys, so it cannot read it together with the key.

    :raises Error: the primary failed, and there is no replica
    """

    def read(_alias: str = PRIMARY) -> int:
        with guard(access, PRIMARY):
            rows = revision_statement().rows(access._asdict())
        return int(rows[0][0]) if rows else 0

    return process.primary.run(read) if has_replica() else read()


@lru_cache
def revision_statement() -> Statement:
    return Statement(compile_queryset(state_of_access().values_list("revision")))
