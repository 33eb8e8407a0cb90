"""The keyset: which payments make a page, and where the neighbouring pages start.

A page is found by its position in the list's index, never by counting. So it costs the same at any depth, and a
payment that arrives meanwhile moves no other from one page to another.
"""

from functools import lru_cache
from typing import Any, NamedTuple, Protocol, cast

from django.db.models import Expression, QuerySet, Subquery
from django.db.models.functions import Coalesce, NullIf
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.views import APIView

from payments import hal
from payments.addresses import Addresses
from payments.hal import HAL, HTML, Link
from payments.keyset import NEWEST_FIRST, PLACE, compared, place
from payments.listing import Listing, declared
from payments.models import Payment, PaymentQuerySet
from payments.parameters import LIMIT_MAX, list_parameters, parameter_schemas, unknown_start
from payments.responses import answered
from payments.rows import NONE, Row
from payments.statements import Slot, Statement

# Page sizes, with and without a start: all that clients can ask for.
SHAPES_MAX = 2 * LIMIT_MAX


class UnknownStart(LookupError):
    """The payment from which a page should start is not in the listing."""


class Page(NamedTuple):
    """Payments in list order, and the ids from which the neighbouring pages start (None: there is no such page)."""

    rows: list[Row]
    previous_from: str | None
    next_from: str | None


def fetch_page(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Return up to `limit` payments of `listing`, newest first, `start` included.

    Cost: one statement, which reads at most `2 * limit + 3` index entries.

    :raises UnknownStart: where `listing` does not hold `start`
    """
    rows = listing.rows(page_statement(limit=limit, from_start=start is not None), start=start)
    if start is not None and not rows:
        raise UnknownStart(start)
    return Page(
        rows=rows[:limit],
        previous_from=rows[0][-1] if rows else None,
        next_from=rows[limit][0] if len(rows) > limit else None,
    )


@lru_cache(SHAPES_MAX)
def page_statement(*, limit: int, from_start: bool) -> Statement[Row]:
    return Statement(page_rows(declared(), start=Slot("start") if from_start else None, limit=limit))


def page_rows(listing: PaymentQuerySet, *, start: Expression | None, limit: int) -> QuerySet[Payment, Row]:
    """Declare the page and the first row of the next; each has in its last column where the previous page starts."""
    page = listing.order_by(*NEWEST_FIRST)
    previous_from: Expression = NONE
    if start is not None:
        first = place(Subquery(listing.filter(id=start).values("created_at")), start)
        page = page.filter(compared("<=", first))
        previous_from = previous_start(listing, first, start, limit)
    return page.as_rows(previous_from)[: limit + 1]


def previous_start(listing: PaymentQuerySet, first: Expression, start: Expression, limit: int) -> Expression:
    """Return the id `limit` places before `first`; where fewer precede it, the first of all; where none, null."""
    preceding = listing.filter(compared(">", first)).order_by(*PLACE).values("id")
    newest = listing.order_by(*NEWEST_FIRST).values("id")
    return Coalesce(
        Subquery(preceding[limit - 1 : limit]),
        NullIf(Subquery(newest[:1]), start),
    )


class HasAddresses(Protocol):
    """A view that knows its answer's addresses."""

    addresses: Addresses


class KeysetPagination(BasePagination):
    """Reads `limit` and `from`, fetches the page, and links it to its neighbours."""

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> list[Any]:
        self.request = request
        self.addresses = cast("HasAddresses", view).addresses
        self.parameters = list_parameters(request.META["QUERY_STRING"])
        try:
            self.page = fetch_page(queryset, start=self.parameters.start, limit=self.parameters.limit)
        except UnknownStart:
            raise unknown_start() from None
        return self.page.rows

    def get_paginated_response(self, data: Any) -> Any:
        return answered(self.request, hal.page("payments", data, links=self.get_links()))

    def get_links(self) -> dict[str, Link | None]:
        """Return the page's links. `self` names its first payment, and so stays this page when newer ones arrive."""
        page = self.page
        return {
            "self": self.get_link(page.rows[0][0] if page.rows else None),
            "previous": self.get_link(page.previous_from) if page.previous_from else None,
            "next": self.get_link(page.next_from) if page.next_from else None,
            "documentation": Link(href=self.addresses.documentation, type=HTML),
        }

    def get_link(self, start: str | None) -> Link:
        return Link(href=self.addresses.page(limit=self.parameters.limit, start=start), type=HAL)

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
