"""The keyset: which payments make a page, and where the neighbouring pages start.

A page is found by its position in the list's index, never by counting. So it costs the same at any depth, and a
payment that arrives meanwhile moves no other from one page to another.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, cast

from django.db import OperationalError
from django.db.models import Expression, QuerySet, Subquery
from django.db.models.functions import Coalesce
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.views import APIView

from payments import hal
from payments.api.errors import TooWide
from payments.api.parameter_schemas import parameter_schemas
from payments.api.parameters import LIMIT_MAX, list_parameters, unknown_start
from payments.api.responses import answered
from payments.database.statements import Slot, Statement
from payments.hal import HAL, HTML, Link
from payments.links import Addresses
from payments.listing import Listing, Shape, current, declared, find_payment, narrowed
from payments.models import Payment, PaymentQuerySet
from payments.ordering import NEWEST_FIRST, Order, is_ahead_of, is_at_or_behind, opposite, place
from payments.rows import Row
from payments.runtime.database_errors import is_timeout

# Two for each size of a page, with and without a start, and some for what is asked for beside, at 10 kB each.
SHAPES_MAX = 3 * LIMIT_MAX


class UnknownStart(LookupError):
    """The payment from which a page should start is none that the key sees."""


class Page(NamedTuple):
    """Payments in list order, and the ids from which the neighbouring pages start (None: there is no such page)."""

    rows: list[Row]
    previous_from: str | None
    next_from: str | None


def fetch_page(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Return up to `limit` payments of `listing` in its order, from the place of `start` on, which it need not hold.

    Cost: one statement, which reads at most `2 * limit + 3` index entries, and those that a filter passes over.

    :raises UnknownStart: where the key does not see `start`
    """
    selection = listing.selection
    rows = listing.rows(partial(page_statement, limit, start is not None, selection.order, listing.shape), start=start)
    if start is not None and not rows:
        raise UnknownStart(start)
    previous_from = rows[-1][-1] if rows else None
    if start is not None and selection.filters:
        rows.pop()  # the start's own
    return Page(
        rows=rows[:limit],
        previous_from=previous_from,
        next_from=rows[limit][0] if len(rows) > limit else None,
    )


@lru_cache(SHAPES_MAX)
def page_statement(
    limit: int,
    from_start: bool,  # noqa: FBT001  to be told apart by position is quicker, and each request does
    order: Order = NEWEST_FIRST,
    shape: Shape = (),
    *,
    is_current: bool = False,
) -> Statement[Row]:
    start = Slot("start") if from_start else None
    querysets = page_querysets(declared(), start=start, limit=limit, order=order, shape=shape)
    return Statement(*querysets, is_planned_anew=bool(shape), provided=current() if is_current else None)


def page_querysets(
    payments: PaymentQuerySet, *, start: Expression | None, limit: int, order: Order = NEWEST_FIRST, shape: Shape = ()
) -> list[QuerySet[Payment, Row]]:
    """Declare the page and the first row of the next, the last of all with where the previous page starts.

    With filters the start's own row comes behind them: it need not match, and there may be none that do.
    """
    if start is None:
        return [narrowed(payments, shape).order_by(*order).as_rows()[: limit + 1]]
    first = place(Subquery(payments.filter(id=start).values("created_at")), start)
    # The place comes before all filters: of two bounds in one direction, an index is entered at the first.
    page = narrowed(payments.filter(is_at_or_behind(first, order)), shape).order_by(*order)
    preceding = narrowed(payments.filter(is_ahead_of(first, order)), shape)
    previous_from = previous_start(preceding, limit=limit, order=order)
    if not shape:
        return [page.as_rows(previous_from)[: limit + 1]]
    return [page.as_rows()[: limit + 1], payments.filter(id=start).as_rows(previous_from)]


def previous_start(preceding: PaymentQuerySet, *, limit: int, order: Order) -> Expression:
    """Return the id `limit` places back; where there are fewer, the first of all; where none, null."""
    nearest_first = preceding.order_by(*opposite(order)).values("id")
    return Coalesce(
        Subquery(nearest_first[limit - 1 : limit]),
        Subquery(preceding.order_by(*order).values("id")[:1]),
    )


class AddressedView(Protocol):
    """A view that knows what was asked, and the addresses of its answer."""

    meta: Mapping[str, str]
    addresses: Addresses


class KeysetPagination(BasePagination):
    """Reads `limit` and `from`, fetches the page, and links it to its neighbours."""

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> list[Any]:
        self.request = request
        self.view = cast("AddressedView", view)
        self.parameters = list_parameters(
            self.view.meta["QUERY_STRING"], is_known=lambda start: find_payment(queryset, start) is not None
        )
        limit, start, selection = self.parameters
        try:
            self.page = fetch_page(queryset._replace(selection=selection), start=start, limit=limit)
        except UnknownStart:
            raise unknown_start() from None
        except OperationalError as error:
            if selection.filters and is_timeout(error):
                raise TooWide from error
            raise
        return self.page.rows

    @property
    def made_of(self) -> tuple[Any, ...]:
        """Return all that the answer depends on, beside the addresses."""
        limit, _, selection = self.parameters
        return *self.page, limit, selection.query

    def get_paginated_response(self, data: Any) -> Any:
        return answered(self.request, hal.page("payments", data, links=self.get_links()))

    def get_results(self, data: Any) -> Any:
        return data["_embedded"]["payments"]

    def get_links(self) -> dict[str, Link | None]:
        """Return the page's links. `self` names its first payment, and so stays this page when newer ones arrive."""
        page = self.page
        return {
            "self": self.get_link(page.rows[0][0] if page.rows else self.parameters.start),
            "previous": self.get_link(page.previous_from) if page.previous_from else None,
            "next": self.get_link(page.next_from) if page.next_from else None,
            "documentation": Link(href=self.view.addresses.documentation, type=HTML),
        }

    def get_link(self, start: str | None) -> Link:
        limit, _, selection = self.parameters
        return Link(href=self.view.addresses.page(limit=limit, start=start, selected=selection.query), type=HAL)

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        return parameter_schemas()

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"$ref": "#/components/schemas/Link"}
        return {
            "type": "object",
            "required": ["count", "_embedded", "_links"],
            "properties": {
                "count": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": LIMIT_MAX,
                    "description": "Payments in this page.",
                },
                "_embedded": {"type": "object", "required": ["payments"], "properties": {"payments": schema}},
                "_links": {
                    "type": "object",
                    "required": ["self", "documentation"],
                    "properties": {"self": link, "previous": link, "next": link, "documentation": link},
                },
            },
        }
