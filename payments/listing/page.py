"""One page of a list: its payments, and where the neighbouring pages start.

One statement reads all of it, so the page and its neighbours come from one snapshot.

A page is found by its position in the list's index, never by counting. Its cost does not depend on the depth, and a
payment that arrives meanwhile moves no other payment to another page.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import Expression, F, Subquery, TextField, Value
from django.db.models.functions import Coalesce

from payments.database.statements import Placeholder
from payments.listing.content import NO_VALUE, Content, ContentStatement, Query, content_sql, proof_row
from payments.listing.filters import Selection
from payments.listing.paid_days import PaidDays, paid_days
from payments.listing.query import Listing, UnboundPayments, filter_values, payments_by_value, payments_of_list, select
from payments.models import PaymentQuerySet
from payments.models.ordering import NEWEST_FIRST, Order, is_at_or_after, is_before, opposite, position, sort_sql
from payments.rows import named

# With filters, a statement reads at least so many rows: for fewer, PostgreSQL would expect to find them soon by reading
# the list, even if they are rare.
FILTERED_ROWS_MIN = 20

# Cached statements: those without filters, for each limit with and without a start, and 250 others. Each takes 10 kB.
STATEMENTS_MAX = 750


class UnknownStart(LookupError):
    """The start of the page is not a payment of the list, regardless of its filters."""


class Page(NamedTuple):
    """Payments in list order, and the IDs that the neighbouring pages start at (None: there is no such page).

    The payments are rows of a compiled statement, or instances of the model. `first_id` is the ID of the first.
    """

    rows: list[Any]
    first_id: str | None = None
    previous_from: str | None = None
    next_from: str | None = None


class PageQuerySets(NamedTuple):
    """The payments of a page and the first one of the next page; `proof` finds the start if `page` may lack it.

    Each payment has `previous_from`, which is not null for the start only: the ID that the previous page starts at.
    """

    page: PaymentQuerySet
    proof: PaymentQuerySet | None = None


def page_querysets(  # noqa: PLR0913  the parts of a page's identity
    payments: PaymentQuerySet,
    *,
    within: PaymentQuerySet,
    start: Expression | None,
    limit: int,
    order: Order = NEWEST_FIRST,
    paid: PaidDays | None = None,
) -> PageQuerySets:
    """Return the QuerySets for a page of `payments`, which filters have selected of `within`.

    `start` is the ID of a payment of `within`. Without filters, both are the same object, and the start is the first
    payment of the page. With filters, the page may lack the start, and a second QuerySet proves that it exists.
    `paid`: the filters' paid days, if they are few.

    Cost: at most `2 * limit + 3` index entries, and the entries that filters skip.
    """
    has_filters = payments is not within
    rows = max(limit, FILTERED_ROWS_MIN) if has_filters else limit
    if start is None:
        if paid:
            listed = within.filter(paid.from_first(order))
            payments = paid.find(listed & payments, listed=listed, order=order, rows=rows + 1)
        return PageQuerySets(payments.annotate(previous_from=NO_VALUE).order_by(*order)[: rows + 1])
    starts = payments_by_value() if isinstance(within, UnboundPayments) else within
    start_position = position_of(starts, start)
    # The position comes before the filters. If two conditions bound an index in the same direction, the
    # database starts the scan at the condition written first.
    listed, before = (within.filter(side(start_position, order)) for side in (is_at_or_after, is_before))
    page, preceding = (listed & payments, before & payments) if has_filters else (listed, before)
    if paid:
        page = paid.find(page, listed=listed, order=order, rows=rows + 1)
        preceding = paid.find(preceding, listed=before, order=opposite(order), rows=rows)
    if not has_filters:
        previous = previous_start(preceding, limit=limit, order=order)
        return PageQuerySets(page.annotate(previous_from=previous).order_by(*order)[: rows + 1])
    return PageQuerySets(
        page.annotate(previous_from=NO_VALUE).order_by(*order)[: rows + 1],
        starts.filter(id=start).annotate(
            previous_from=FilteredPreviousStart(preceding, limit=limit, order=order, rows=rows)
        ),
    )


def position_of(payments: PaymentQuerySet, start: Expression) -> Expression:
    """Return the position of the payment whose ID is `start`; without such a payment, it is unknown."""
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


def build_page(rows: list[Any], *, start: str | None, limit: int, proof: Any, row_of: Callable[[Any], Any]) -> Page:
    """Return the page of what the QuerySets have found. `proof` is the start, if they look it up.

    `row_of` gives one of `rows` its names. The start and each row have the attribute `previous_from`.

    :raises UnknownStart: there is a start, and the QuerySets have not found it
    """
    first = row_of(rows[0]) if rows else None
    start_row = proof or first
    if start is not None and start_row is None:
        raise UnknownStart(start)
    return Page(
        rows[:limit],
        None if first is None else first.id,
        previous_from=None if start_row is None else start_row.previous_from,
        next_from=row_of(rows[limit]).id if len(rows) > limit else None,
    )


def evaluate_page(
    payments: PaymentQuerySet, *, within: PaymentQuerySet, start: str | None, limit: int, order: Order = NEWEST_FIRST
) -> Page:
    """Return a page of model instances, evaluated by the ORM. See `page_querysets` and, for errors, `build_page`."""
    start_value = None if start is None else Value(start)
    querysets = page_querysets(payments, within=within, start=start_value, limit=limit, order=order)
    proof = None if querysets.proof is None else querysets.proof.first()
    return build_page(list(querysets.page), start=start, limit=limit, proof=proof, row_of=lambda payment: payment)


@lru_cache(STATEMENTS_MAX)
def page_statement(  # noqa: PLR0913, PLR0917  the parts of a page's identity
    payments: PaymentQuerySet,
    within: UnboundPayments,
    limit: int,
    has_start: bool,  # noqa: FBT001  a positional argument: lru_cache finds it faster, and each request calls this
    order: Order = NEWEST_FIRST,
    paid: PaidDays | None = None,
) -> ContentStatement:
    """Return the statement for a page of unbound payments; see `page_querysets`.

    `limit` is part of the SQL: PostgreSQL assumes that an unknown LIMIT returns a tenth of the rows. The rows of the
    statement's parts come in order, because requests run without parallel workers (database/postgresql/base.py).
    """
    start = Placeholder("start") if has_start else None
    page, proof = page_querysets(payments, within=within, start=start, limit=limit, order=order, paid=paid)
    previous_from = F("previous_from")
    return ContentStatement(
        content_sql(page, previous_from=previous_from),
        proof=None if proof is None else proof_row(proof, previous_from=previous_from),
        has_filters=payments is not within,
    )


def page_query(
    payments: PaymentQuerySet, *, within: UnboundPayments, selection: Selection, start: str | None, limit: int
) -> Query:
    """Return the query for a page of unbound payments, which the selection's filters have selected of `within`."""
    values: dict[str, Any] = {"start": start}
    paid = None
    if selection.filters:
        values |= filter_values(selection.filters)
        paid = paid_days(selection.filters)
    statement = page_statement(payments, within, limit, start is not None, selection.order, paid)
    return Query(statement, values, has_start=start is not None)


def page_of_content(content: Content, *, start: str | None, limit: int) -> Page:
    """Return the page that the statement of a page has read. See `build_page` for the errors."""
    return build_page(content.rows, start=start, limit=limit, proof=content.proof, row_of=named)


def fetch_page(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Return up to `limit` payments of the listing in its order, from the position of the payment `start`.

    :raises UnknownStart: `start` is not visible to the listing's access
    """
    selection = listing.selection
    within = payments_of_list(selection.filters)
    payments = select(within, selection.filters)
    query = page_query(payments, within=within, selection=selection, start=start, limit=limit)
    return page_of_content(query.read(listing.access), start=start, limit=limit)
