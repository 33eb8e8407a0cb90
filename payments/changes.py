"""One page of the change feed: payments in the order in which they were last created or changed.

Each change has a number (models/change.py), and a payment belongs to its last change. So a payment that changes again
moves to the end of the feed, and a reader who has passed it finds it there.

The cost of a page does not depend on the length of the feed. A change whose payments have all moved still costs an
index lookup. Therefore a page reads at most `PAGE_CHANGES_MAX` changes. It may have few payments or none, and still a
next page.
"""

from functools import lru_cache
from typing import Any, NamedTuple, cast

from django.db import connection
from django.db.models import BigIntegerField, F, Q, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast
from django.db.models.lookups import GreaterThan
from msgspec.structs import replace

from payments.database.round_trips import Query
from payments.database.statements import Placeholder, Statement, compile_queryset
from payments.expressions import Literal
from payments.listing import NO_VALUE, REVISION, Listing, state, state_row, visible_payments
from payments.models import AccessState, Change, current_epoch
from payments.routing import fetch_rows
from payments.rows import COLUMNS, ID, Row, as_rows
from payments.tokens import Newest, Position

PAGE_CHANGES_MAX = 1000

# Cached statements: three for each limit.
STATEMENTS_MAX = 750

# The column that rows have after those of the record: the number of the change.
NUMBER = len(COLUMNS)

# Columns of the last row, which has no ID (`newest_row`).
EPOCH, NEWEST_NUMBER, NEWEST_ID = range(REVISION + 1, REVISION + 4)

# The ID of the row which proves that the database knows the newest change of a position.
KNOWN = "known"


class UnknownPosition(LookupError):
    """The database does not know the newest change of a position, so its reader may have missed changes."""


class ChangesPage(NamedTuple):
    """Rows in the order of the feed, and the position after them.

    `has_next`: there is more to read now. `revision` identifies the state of the payments; None if it is unknown.
    """

    rows: list[Row]
    later: Position
    has_next: bool
    revision: int | None


def fetch_changes(listing: Listing, position: Position, *, limit: int) -> ChangesPage:
    """Return up to `limit` payments after a position of the listing, which must not have filters.

    :raises UnknownPosition: the primary does not know the newest change of the position
    """
    query = changes_query(listing, position, limit=limit)
    proves_start = None if position.is_beginning else has_known
    rows, revision, last_row = fetch_rows(listing, query, proves_start=proves_start)
    if proves_start:
        if not has_known(rows):
            raise UnknownPosition
        del rows[0]
    end = end_position(listing, last_row)
    if len(rows) > limit:
        row = rows[limit - 1]
        later = replace(end, number=int(row[NUMBER]), after=row[ID])
        return ChangesPage(rows[:limit], later, has_next=True, revision=revision)
    next_number = position.number + PAGE_CHANGES_MAX
    if next_number < end.number:
        return ChangesPage(rows, replace(end, number=next_number), has_next=True, revision=revision)
    return ChangesPage(rows, end, has_next=False, revision=revision)


def fetch_end(listing: Listing) -> ChangesPage:
    """Return an empty page at the end of the feed."""
    _, revision, last_row = fetch_rows(listing, end_query(listing))
    return ChangesPage([], end_position(listing, last_row), has_next=False, revision=revision)


def has_known(rows: list[Row]) -> bool:
    return bool(rows) and rows[0][ID] == KNOWN


def end_position(listing: Listing, last_row: Row | None) -> Position:
    """Return the position after all changes. Without a state, it is the beginning, which every database knows."""
    if last_row is None:
        return Position(*listing.access)
    epoch, number, change_id = (int(last_row[column]) for column in (EPOCH, NEWEST_NUMBER, NEWEST_ID))
    return Position(*listing.access, Newest(epoch, number, change_id), number=number + 1)


def changes_query(listing: Listing, position: Position, *, limit: int) -> Query:
    """Return the query for a page and the first row after it."""
    statement = changes_statement(
        limit, PAGE_CHANGES_MAX, checks_epoch=not position.is_beginning, checks_change=position.newest.number > 0
    )
    values = listing.values(start=None) | {
        "after": position.after,
        "epoch": position.newest.epoch,
        "newest_number": position.newest.number,
        "newest_id": position.newest.change_id,
        "number": position.number,
        "last_number": position.number + PAGE_CHANGES_MAX - 1,
    }
    return Query(statement, values)


def end_query(listing: Listing) -> Query:
    return Query(end_statement(), listing.values(start=None))


@lru_cache
def end_statement() -> Statement[Row]:
    return Statement(newest_row())


@lru_cache(STATEMENTS_MAX)
def changes_statement(limit: int, changes_max: int, *, checks_epoch: bool, checks_change: bool) -> Statement[Row]:
    """Return the statement for a page. Both numbers are part of the SQL, as in `page_statement`."""
    return Statement(
        *([known_row(checks_change=checks_change)] if checks_epoch else []),
        changed_payments(limit + 1, changes_max),
        newest_row(),
    )


def known_row(*, checks_change: bool) -> QuerySet[Any, Row]:
    """Return a query for a row with the ID `KNOWN`, if the database knows the newest change of a position."""
    known = state().alias(current=current_epoch()).filter(current=Placeholder("epoch"))
    if checks_change:
        known = known.filter(
            organization__changes__organization_id=Placeholder("organization_id"),
            organization__changes__mode=Placeholder("mode"),
            organization__changes__number=Placeholder("newest_number"),
            organization__changes__change_id=Placeholder("newest_id"),
        )
    values: list[Any] = [NO_VALUE] * (NUMBER + 1)
    values[ID] = Literal(KNOWN)
    return cast("QuerySet[Any, Row]", known.values_list(*values))


def changed_payments(rows: int, changes_max: int) -> QuerySet[Any, Row] | str:
    """Return a query for payments after a position, in the order of their changes.

    SQLite reads a join in this order, and stops at the limit. PostgreSQL may prefer to read and sort the payments of
    all changes that the page may read: it expects few changes, so both seem to cost the same.
    """
    if connection.vendor == "postgresql":
        return changed_payments_on_postgresql(rows, changes_max)
    change = "organization__changes__"
    payments = visible_payments().filter(
        Q(**{f"{change}number__gt": Placeholder("number")}) | Q(id__gt=Placeholder("after")),
        **{
            "change_id": F(f"{change}change_id"),
            f"{change}organization_id": Placeholder("organization_id"),
            f"{change}mode": Placeholder("mode"),
            f"{change}number__gte": Placeholder("number"),
            f"{change}number__lte": Placeholder("last_number"),
        },
    )
    return as_rows(payments.order_by(f"{change}number", "id"), Cast(f"{change}number", TextField()))[:rows]


def changed_payments_on_postgresql(rows: int, changes_max: int) -> str:
    """Return a query that looks up the payments of one change after the other, until it has enough rows.

    LATERAL with a LIMIT is always a nested loop, with any statistics and settings. It returns the payments in
    the order of the changes, so it needs no sort of them. For the payments of a change, only the index `payment_change`
    may seem fast, also without statistics:

    - A range compares `change_id`: PostgreSQL always expects few payments of it.
    - `change_id` begins the order: otherwise, PostgreSQL may read the primary key in its order.
    - The mode is hidden: otherwise, an organization and mode seem to have one payment.
    """
    changes = Change.objects.filter(
        organization_id=Placeholder("organization_id"),
        mode=Placeholder("mode"),
        number__gte=Placeholder("number"),
        number__lte=Placeholder("last_number"),
    )
    number, change_id = (RawSQL(f"change.{name}", (), BigIntegerField()) for name in ("number", "change_id"))  # noqa: S611
    payments = visible_payments(hides_mode=True).filter(
        GreaterThan(number, Placeholder("number")) | Q(id__gt=Placeholder("after")),
        change_id__range=(change_id, change_id),
    )
    changes_sql = compile_queryset(changes.order_by("number").values_list("number", "change_id")[:changes_max])
    payments_sql = compile_queryset(as_rows(payments.order_by("change_id", "id"), Cast(number, TextField()))[:rows])
    return f"SELECT page.* FROM ({changes_sql}) AS change CROSS JOIN LATERAL ({payments_sql}) AS page LIMIT {rows}"


def newest_row() -> QuerySet[AccessState, Row]:
    """Return a query for the last row: the revision, the epoch and the newest change."""
    return state_row("revision", current_epoch(), "change_number", "change_id", columns=NUMBER + 1)
