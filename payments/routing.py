"""Runs a listing's statement on the primary or on a replica."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from payments.admission import reading
from payments.database.round_trips import Query, ReadAhead
from payments.listing import REVISION, Listing, payment_statement, revision_statement
from payments.models import Access
from payments.rows import ID, Row
from payments.runtime.process import process
from payments.runtime.servers import PRIMARY, REPLICA, has_replica


def server_for_lists() -> str:
    """Return the alias of the server that lists are read from: the replica, while it keeps up with the primary."""
    if not has_replica():
        return PRIMARY
    if process.replica.is_usable():
        return REPLICA
    process.hooks.replica_skipped("away" if process.replica.breaker.is_open else "lag")
    return PRIMARY


class Fetched(NamedTuple):
    """The rows of a query, and the revision of the payments; None if it is unknown. Both are from one snapshot.

    `state` is the row that contains the revision; None if the payments have never changed.
    """

    rows: list[Row]
    revision: int | None
    state: Row | None = None


# Returns whether the rows of a query prove that the database knows its start.
ProvesStart: TypeAlias = Callable[[list[Row]], bool]


def fetch_rows(listing: Listing, query: Query, *, proves_start: ProvesStart | None = None) -> Fetched:
    """Return the rows of a listing's query. It runs unless it has run together with the query for the key.

    Only the primary can prove that it does not know the start of a query. Without `proves_start`, it has none.

    :raises NoPlace, CircuitOpen: the listing belongs to a client; see `reading`
    """
    if (rows := listing.read_ahead.rows(query)) is not None:
        return from_primary(rows)
    if listing.client is not None:
        with reading(listing.access, has_filters=query.has_filters, client=listing.client, using=listing.using):
            return run_query(listing, query, proves_start)
    return run_query(listing, query, proves_start)


def run_query(listing: Listing, query: Query, proves_start: ProvesStart | None) -> Fetched:
    if listing.using == PRIMARY:
        return from_primary(query.rows())
    return fetch_at_revision(listing, query) or fetch_without_primary(query, proves_start)


def split_revision(rows: list[Row]) -> Fetched:
    """Return the rows of a statement. Its last row has the revision, unless the payments have never changed."""
    if rows and rows[-1][ID] is None:
        return Fetched(rows[:-1], int(rows[-1][REVISION]), rows[-1])
    return Fetched(rows, None)


def from_primary(rows: list[Row]) -> Fetched:
    """Return the rows of a statement on the primary: payments that have never changed have the revision 0."""
    own = split_revision(rows)
    return own._replace(revision=0) if own.revision is None else own


def fetch_at_revision(listing: Listing, query: Query) -> Fetched | None:
    """Return the rows of a replica that has the primary's revision; if it has another one, the rows of the primary.

    With the same revision, a replica's page equals the page that the primary would have returned when the key was
    checked. Therefore the pages of one walk may come from any server. Returns None if the primary is unavailable, or
    was unavailable when the key was checked.
    """
    if listing.revision is None:
        return None
    rows = process.replica.run(query.rows, timeout_opens=not query.has_filters)
    if rows is not None and (own := split_revision(rows)).revision == listing.revision:
        return own
    process.hooks.replica_skipped("away" if process.replica.breaker.is_open else "behind")
    rows = process.primary.run(query.rows)
    return None if rows is None else from_primary(rows)


def fetch_without_primary(query: Query, proves_start: ProvesStart | None) -> Fetched:
    """Return the rows of a replica while the primary is unavailable.

    :raises Error: the error of the primary, if the replica does not know the start of the query
    """
    rows = process.replica.run(query.rows)
    if rows is not None:
        own = split_revision(rows)
        if proves_start is None or proves_start(own.rows):
            return own
    return from_primary(query.rows())  # the primary raises its error, unless it has recovered


def revision_query(access: Access) -> Query:
    """Return the query for the revision of the payments of an access."""
    return Query(revision_statement(), {"organization_id": access.organization_id, "mode": access.mode})


def read_revision(access: Access, read_ahead: ReadAhead) -> int | None:
    """Return the revision of the payments of an access on the primary; None if the primary has just failed.

    Without a row it is 0: the payments have never changed. No replica has this revision, so the primary answers.

    :raises Error: the primary failed, and there is no replica
    """
    query = revision_query(access)

    def read(_alias: str = PRIMARY) -> list[Any]:
        rows = read_ahead.rows(query)
        return query.rows() if rows is None else rows

    rows = process.primary.run(read) if has_replica() else read()
    if rows is None:
        return None
    return int(rows[0][0]) if rows else 0


def payment_query(access: Access, payment_id: str) -> Query:
    """Return the query for the payment with an ID."""
    return Query(payment_statement(), Listing(access).values(start=payment_id))


def find_payment(listing: Listing, payment_id: str) -> Fetched:
    """Return the payment with that ID if the listing's access covers it; filters are ignored."""
    return fetch_rows(listing, payment_query(listing.access, payment_id), proves_start=bool)
