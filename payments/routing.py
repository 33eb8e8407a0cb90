"""Runs a listing's statement on the primary or on a replica."""

from functools import partial
from typing import Any

from payments.database.statements import Statement
from payments.filters import EVERYTHING
from payments.listing import Listing, payment_statement
from payments.rows import Row
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


def fetch_rows(listing: Listing, statement: Statement[Row], *, start: str | None) -> list[Row]:
    """Return the rows of a listing's statement; `start` is the ID of a payment."""
    values = listing.values(start=start)
    if listing.using == PRIMARY:
        return statement.rows(values)
    rows = fetch_current_rows(listing, statement, values)
    return fetch_rows_without_primary(statement, values) if rows is None else rows


def fetch_current_rows(listing: Listing, statement: Statement[Row], values: dict[str, Any]) -> list[Row] | None:
    """Return the rows of a replica that has the primary's revision; if it has none, the rows of the primary.

    With the same revision, a replica's page equals the page that the primary would have returned when the key was
    checked. Therefore the pages of one walk may come from any server. Returns None if the primary is unavailable, or
    was unavailable when the key was checked.
    """
    if listing.revision is None:
        return None
    timeout_opens = not listing.selection.filters
    bound = {**values, "revision": listing.revision}
    query = partial(statement.rows, bound, if_condition=True)
    if rows := process.replica.run(query, timeout_opens=timeout_opens):
        return rows
    process.hooks.replica_skipped("away" if process.replica.breaker.is_open else "not_found")
    return process.primary.run(partial(statement.rows, values))


def fetch_rows_without_primary(statement: Statement[Row], values: dict[str, Any]) -> list[Row]:
    """Return the rows of a replica while the primary is unavailable.

    Only the primary can prove that a payment does not exist.

    :raises Error: the error of the primary, if the replica has no row for `start`
    """
    rows = process.replica.run(partial(statement.rows, values))
    if rows or (rows is not None and values["start"] is None):
        return rows
    return statement.rows(values)  # the primary raises its error, unless it has recovered


def find_payment(listing: Listing, payment_id: str) -> Row | None:
    """Return the payment with that ID if the listing's access covers it; filters are ignored."""
    rows = fetch_rows(listing._replace(selection=EVERYTHING), payment_statement(), start=payment_id)
    return rows[0] if rows else None
