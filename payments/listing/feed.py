"""One page of the change feed: payments in the order in which they were last created or changed.

Each change has a number (models/access_state.py), and a payment belongs to its last change. So a payment that changes
again moves to the end of the feed, and a reader who has passed it finds it there.

The cost of a page does not depend on the length of the feed. A change whose payments have all moved still costs an
index lookup. Therefore a page reads at most `PAGE_CHANGES_MAX` changes. It may have few payments or none, and still a
next page.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import BigIntegerField, F, Q, QuerySet, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast
from django.db.models.lookups import GreaterThan
from msgspec.structs import replace

from payments.database.statements import Placeholder, compile_queryset
from payments.listing.content import Content, ContentStatement, Query, State, content_sql, proof_row, state_of_access
from payments.listing.query import visible_payments
from payments.listing.tokens import NEVER_CHANGED, FeedPosition, Newest
from payments.models import Access, Change, current_epoch
from payments.rows import named

PAGE_CHANGES_MAX = 1000

# The position before all changes, in each organization and mode.
BEGINNING = (NEVER_CHANGED, 1, "")

# Cached statements: three for each limit.
STATEMENTS_MAX = 750


class UnknownPosition(LookupError):
    """The database does not know the newest change of a position, so its reader may have missed changes."""


class ChangesPage(NamedTuple):
    """Payments in the order of the feed, and the position after them. `has_next`: there is more to read now."""

    rows: list[Any]
    later: FeedPosition
    has_next: bool


def fetch_changes(position: FeedPosition, *, limit: int) -> ChangesPage:
    """Return up to `limit` payments after a position.

    :raises UnknownPosition: the database does not know the newest change of the position
    """
    return build_changes_page(changes_query(position, limit=limit).read(position.access), position, limit=limit)


def build_changes_page(content: Content, position: FeedPosition, *, limit: int) -> ChangesPage:
    """Return the page after a position that the query for it has read. For errors, see `fetch_changes`."""
    if position.newest != NEVER_CHANGED and not content.proof:
        raise UnknownPosition
    rows, end = content.rows, end_position(position.access, content.state)
    if len(rows) > limit:
        row = named(rows[limit - 1])
        later = replace(end, number=int(row.change_number or 0), after=row.id)
        return ChangesPage(rows[:limit], later, has_next=True)
    next_number = position.number + PAGE_CHANGES_MAX
    if next_number < end.number:
        return ChangesPage(rows, replace(end, number=next_number), has_next=True)
    return ChangesPage(rows, end, has_next=False)


def end_position(access: Access, state: State | None) -> FeedPosition:
    """Return the position after all changes. Without a state, it is the beginning, which every database knows."""
    if state is None:
        return FeedPosition(*access)
    newest = Newest(state.epoch, state.change_number, state.change_id)
    return FeedPosition(*access, newest, number=state.change_number + 1)


def changes_query(position: FeedPosition | None, *, limit: int) -> Query:
    """Return the query for the page after a position, or for the first page, and for the first payment after it."""
    newest, number, after = (position.newest, position.number, position.after) if position else BEGINNING
    statement = changes_statement(
        limit, PAGE_CHANGES_MAX, checks_epoch=newest != NEVER_CHANGED, checks_change=newest.number > 0
    )
    values = {
        "after": after,
        "epoch": newest.epoch,
        "newest_number": newest.number,
        "newest_id": newest.change_id,
        "number": number,
        "last_number": number + PAGE_CHANGES_MAX - 1,
    }
    return Query(statement, values, has_start=newest != NEVER_CHANGED)


@lru_cache
def end_query() -> Query:
    """Return the query for the state alone."""
    return Query(ContentStatement(), {})


@lru_cache(STATEMENTS_MAX)
def changes_statement(limit: int, changes_max: int, *, checks_epoch: bool, checks_change: bool) -> ContentStatement:
    """Return the statement for a page. Both numbers are part of the SQL, as in `page_statement`."""
    proof = known_change(checks_change=checks_change) if checks_epoch else None
    return ContentStatement(changed_payments(limit + 1, changes_max), proof=proof)


def known_change(*, checks_change: bool) -> str:
    """Return a query for a row, if the database knows the newest change of a position."""
    known: QuerySet[Any, Any] = state_of_access().alias(current=current_epoch()).filter(current=Placeholder("epoch"))
    if checks_change:
        known = changes_of_access().filter(
            organization_id__in=known.values("organization_id"),
            number=Placeholder("newest_number"),
            change_id=Placeholder("newest_id"),
        )
    return proof_row(known)


def changes_of_access() -> QuerySet[Change, Change]:
    """Return a query for the changes of an access that is bound when the statement runs."""
    return Change.objects.filter(organization_id=Placeholder("organization_id"), mode=Placeholder("mode"))


def changed_payments(rows: int, changes_max: int) -> str:
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
    ordered = payments.order_by(f"{change}number", "id")
    return content_sql(ordered, change_number=Cast(f"{change}number", TextField()), limit=rows)


def changed_payments_on_postgresql(rows: int, changes_max: int) -> str:
    """Return a query that looks up the payments of one change after the other, until it has enough rows.

    LATERAL with a LIMIT is always a nested loop, with any statistics and settings. It returns the payments in
    the order of the changes, so it needs no sort of them. For the payments of a change, only the index `payment_change`
    may seem fast, also without statistics:

    - A range compares `change_id`: PostgreSQL always expects few payments of it.
    - `change_id` begins the order: otherwise, PostgreSQL may read the primary key in its order.
    - The mode is hidden: otherwise, an organization and mode seem to have one payment.
    """
    changes = changes_of_access().filter(number__gte=Placeholder("number"), number__lte=Placeholder("last_number"))
    number, change_id = (RawSQL(f"change.{name}", (), BigIntegerField()) for name in ("number", "change_id"))  # noqa: S611
    payments = visible_payments(hides=("mode",)).filter(
        GreaterThan(number, Placeholder("number")) | Q(id__gt=Placeholder("after")),
        change_id__range=(change_id, change_id),
    )
    changes_sql = compile_queryset(changes.order_by("number").values_list("number", "change_id")[:changes_max])
    ordered = payments.order_by("change_id", "id")
    payments_sql = content_sql(ordered, change_number=Cast(number, TextField()), limit=rows)
    pages_sql = f"({changes_sql}) AS change CROSS JOIN LATERAL ({payments_sql}) AS page"
    return f"SELECT * FROM (SELECT page.* FROM {pages_sql} LIMIT {rows}) AS part"
