"""One page of a list: its payments, and where the neighbouring pages start.

One statement reads all of it, so the page and its neighbours come from one snapshot.

A page is found by its position in the list's index, never by counting. Its cost does not depend on the depth, and a
payment that arrives meanwhile moves no other payment to another page.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import Expression, QuerySet, Subquery, TextField
from django.db.models.functions import Coalesce

from payments.database.round_trips import Query
from payments.database.statements import Placeholder, Statement
from payments.expressions import Literal
from payments.listing import NO_VALUE, Listing, Shape, apply_filters, revision_row, visible_payments
from payments.models import PaymentQuerySet
from payments.ordering import NEWEST_FIRST, Order, is_at_or_after, is_before, opposite, position
from payments.routing import fetch_rows
from payments.rows import COLUMNS, ID, Row, as_rows

# With filters, a statement reads at least so many rows: for fewer, PostgreSQL would expect to find them soon by reading
# the list, even if they are rare.
FILTERED_ROWS_MIN = 20

# Cached statements: those without filters, for each limit with and without a start, and 250 others. Each takes 10 kB.
STATEMENTS_MAX = 750

# The columns that a page's rows have after those of the record.
PREVIOUS_FROM = len(COLUMNS)  # the ID that the previous page starts at
PART = len(COLUMNS) + 1  # only with filters: PAGE_PART or START_PART

PAGE_PART, START_PART = "page", "start"


class UnknownStart(LookupError):
    """The start of the page is not a payment of the listing's organization and mode."""


class Page(NamedTuple):
    """Rows in list order, and the IDs that the neighbouring pages start at (None: there is no such page).

    `revision` identifies the state of the payments; None if it is unknown.
    """

    rows: list[Row]
    previous_from: str | None
    next_from: str | None
    revision: int | None = None


def fetch_page(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Return up to `limit` payments of the listing in its order, from the position of the payment `start`.

    `start` need not match the listing's filters.

    Cost: one statement, which reads at most `2 * limit + 3` index entries, and the entries that filters skip.

    :raises UnknownStart: `start` is not visible to the listing's access
    """
    query = page_query(listing, start=start, limit=limit)
    rows, revision, _ = fetch_rows(listing, query, proves_start=None if start is None else bool)
    if start is None:
        return build_page(rows, limit=limit, revision=revision)
    if not rows:
        raise UnknownStart(start)
    start_row = rows[0]
    if listing.selection.filters:
        start_row = next(row for row in rows if row[PART] == START_PART)
        rows = [row for row in rows if row[PART] == PAGE_PART]
    return build_page(rows, limit=limit, previous_from=start_row[PREVIOUS_FROM], revision=revision)


def page_query(listing: Listing, *, start: str | None, limit: int) -> Query:
    """Return the query for the rows of a page, the first row of the next page, and the revision."""
    shape = listing.shape if listing.selection.filters else ()
    statement = page_statement(limit, start is not None, listing.selection.order, shape)
    return Query(statement, listing.values(start=start))


def build_page(rows: list[Row], *, limit: int, previous_from: str | None = None, revision: int | None = None) -> Page:
    """Return the page. A row after `limit` rows is the start of the next page."""
    return Page(rows[:limit], previous_from, rows[limit][ID] if len(rows) > limit else None, revision)


@lru_cache(STATEMENTS_MAX)
def page_statement(
    limit: int,
    has_start: bool,  # noqa: FBT001  a positional argument: lru_cache finds it faster, and each request calls this
    order: Order = NEWEST_FIRST,
    shape: Shape = (),
) -> Statement[Row]:
    """Return the statement for the rows of a page, the first row of the next page, and the revision.

    `limit` is part of the SQL: PostgreSQL assumes that an unknown LIMIT returns a tenth of the rows.
    """
    start = Placeholder("start") if has_start else None
    payments = visible_payments(hides_list=any(part.filter.replaces_list for part in shape))
    querysets = page_querysets(payments, start=start, limit=limit, order=order, shape=shape)
    columns = PART + 1 if shape else PREVIOUS_FROM + 1
    return Statement(*querysets, revision_row(columns=columns), is_planned_each_time=bool(shape))


def page_querysets(
    payments: PaymentQuerySet, *, start: Expression | None, limit: int, order: Order = NEWEST_FIRST, shape: Shape = ()
) -> list[QuerySet[Any, Row]]:
    """Return the query for a page and the first row of the next page. With filters, add a query for the start.

    Without filters, the start is the first row of the page. With filters, the page may lack the start. Then the second
    query returns the row of the start. This row proves that the start exists, and contains the ID that the previous
    page starts at.

    The queries become one statement with UNION ALL. PostgreSQL returns their rows in this order, because requests
    run without parallel workers (database/postgresql/base.py).
    """
    rows = max(limit, FILTERED_ROWS_MIN) if shape else limit
    if start is None:
        first_page = apply_filters(payments, shape).order_by(*order)
        return [as_rows(first_page, NO_VALUE, *([Literal(PAGE_PART)] if shape else []))[: rows + 1]]
    at = position_of(payments, start)
    # The position comes before the filters. If two conditions bound an index in the same direction, the
    # database starts the scan at the condition written first.
    page = apply_filters(payments.filter(is_at_or_after(at, order)), shape).order_by(*order)
    preceding = apply_filters(payments.filter(is_before(at, order)), shape)
    if not shape:
        return [as_rows(page, previous_start(preceding, limit=limit, order=order))[: rows + 1]]
    start_row = payments.filter(id=start)
    return [
        as_rows(page, NO_VALUE, Literal(PAGE_PART))[: rows + 1],
        as_rows(start_row, FilteredPreviousStart(preceding, limit=limit, order=order, rows=rows), Literal(START_PART)),
    ]


def position_of(payments: PaymentQuerySet, start: Expression) -> Expression:
    """Return the position of the payment whose ID is `start`; without a row, it is unknown."""
    return position(Subquery(payments.filter(id=start).values("created_at")), start)


def previous_start(preceding: PaymentQuerySet, *, limit: int, order: Order) -> Expression:
    """Return the ID that the previous page starts at.

    It is `limit` payments back, or the first payment if fewer precede, or null if none do.

    A reverse scan of the index stops after `limit` entries, so the cost does not depend on the position.
    """
    nearest_first = preceding.order_by(*opposite(order)).values("id")
    return Coalesce(
        Subquery(nearest_first[limit - 1 : limit]),
        Subquery(preceding.order_by(*order).values("id")[:1]),
    )


class FilteredPreviousStart(Subquery):
    """The ID that the previous page of a list with filters starts at, with one search for matching payments.

    A second search, for the first payment of all, would read the list if matching payments are rare. The search reads
    `rows` payments, at least `limit`.
    """

    def __init__(self, preceding: PaymentQuerySet, *, limit: int, order: Order, rows: int) -> None:
        nearest_first = sort_sql(opposite(order))
        nearest = f"SELECT * FROM (%(subquery)s) AS preceding ORDER BY {nearest_first} LIMIT {limit}"
        template = f"(SELECT id FROM ({nearest}) AS nearest ORDER BY {sort_sql(order)} LIMIT 1)"
        preceding_rows = preceding.order_by(*opposite(order)).values("id", "created_at")[:rows]
        super().__init__(preceding_rows, output_field=TextField(), template=template)


def sort_sql(order: Order) -> str:
    """Return an order in SQL: `created_at DESC, id DESC`."""
    return ", ".join(f"{name[1:]} DESC" if name.startswith("-") else name for name in order)
