"""The keyset: which payments make a page, and where the neighbouring pages start.

A page is found by its position in the list's index, never by counting. So it costs the same at any depth, and a
payment that arrives meanwhile moves no other from one page to another.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, F, Func, QuerySet, Subquery, Value
from django.db.models.expressions import BaseExpression
from django.db.models.functions import Coalesce, NullIf
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from payments import hal
from payments.addresses import Addresses
from payments.hal import HAL, HTML, Link
from payments.models import Payment, PaymentQuerySet
from payments.parameters import LIMIT_MAX, list_parameters, parameter_schemas, unknown_start

POSITION = ("created_at", "id")
NEWEST_FIRST = ("-created_at", "-id")


class UnknownStart(LookupError):
    """The payment from which a page should start is not in the listing."""


@dataclass(frozen=True)
class Page:
    """Payments in list order, and the ids from which the neighbouring pages start (None: there is no such page)."""

    rows: list[Payment]
    previous_from: str | None
    next_from: str | None


def fetch_page(listing: PaymentQuerySet, *, start: str | None, limit: int) -> Page:
    """Return up to `limit` payments of `listing`, newest first, `start` included.

    Cost: one statement, which reads at most `2 * limit + 3` index entries.

    :raises UnknownStart: where `listing` does not hold `start`
    """
    page: QuerySet[Payment] = listing.order_by(*NEWEST_FIRST)
    if start is not None:
        position = row_value(Subquery(listing.filter(id=start).values("created_at")), Value(start))
        page = page.filter(compared("<=", position)).annotate(
            previous_from=previous_start(listing, position, start, limit)
        )
    rows = list(page[: limit + 1])
    if start is not None and not rows:
        raise UnknownStart(start)
    return Page(
        rows=rows[:limit],
        previous_from=vars(rows[0])["previous_from"] if start is not None else None,
        next_from=rows[limit].id if len(rows) > limit else None,
    )


def previous_start(listing: PaymentQuerySet, position: BaseExpression, start: str, limit: int) -> BaseExpression:
    """Return the id `limit` places before `position`; where fewer precede it, the first of all; where none, null."""
    preceding = listing.filter(compared(">", position)).order_by(*POSITION).values("id")
    newest = listing.order_by(*NEWEST_FIRST).values("id")
    return Coalesce(
        Subquery(preceding[limit - 1 : limit]),
        NullIf(Subquery(newest[:1]), Value(start)),
    )


def compared(operator: str, position: BaseExpression) -> BaseExpression:
    """Return `(created_at, id) <operator> position`, which both databases look up in the list's index.

    Django's own tuple lookups write it for SQLite as `a < x OR (a = x AND b <= y)`, which scans. So does SQLite where
    one subquery gives both values: hence the row of a subquery for the time, and the id that is known.
    """
    row = row_value(*map(F, POSITION))
    return Func(row, position, template="%(expressions)s", arg_joiner=f" {operator} ", output_field=BooleanField())


def row_value(*values: BaseExpression | F) -> BaseExpression:
    return Func(*values, template="(%(expressions)s)", arg_joiner=", ")


class KeysetPagination(BasePagination):
    """Reads `limit` and `from`, fetches the page, and links it to its neighbours."""

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> list[Any]:
        self.addresses = Addresses.of(request)
        self.parameters = list_parameters(request.query_params)
        try:
            self.page = fetch_page(queryset, start=self.parameters.start, limit=self.parameters.limit)
        except UnknownStart:
            raise unknown_start() from None
        return self.page.rows

    def get_paginated_response(self, data: Any) -> Response:
        return Response(hal.page("payments", data, links=self.get_links()))

    def get_links(self) -> dict[str, Link | None]:
        """Return the page's links. `self` names its first payment, and so stays this page when newer ones arrive."""
        page = self.page
        return {
            "self": self.get_link(page.rows[0].id if page.rows else None),
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
