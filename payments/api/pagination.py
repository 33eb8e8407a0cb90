"""Keyset pagination: pages of the list and of the change feed, as HAL documents."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.http import HttpRequest
from msgspec import to_builtins
from rest_framework.filters import BaseFilterBackend
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from payments.api.errors import LostChanges
from payments.api.links import Links
from payments.api.parameters import (
    NOW,
    ChangesParameters,
    ListParameters,
    invalid_from,
    invalid_token,
    parse_changes_parameters,
    parse_list_parameters,
    query_string,
)
from payments.hal import HTML, Link
from payments.listing.content import Content, Query
from payments.listing.feed import (
    ChangesPage,
    UnknownPosition,
    build_changes_page,
    build_end,
    changes_query,
    end_query,
)
from payments.listing.page import Page, UnknownStart, evaluate_page, page_of_content, page_query
from payments.listing.query import select, visible_payments
from payments.listing.tokens import FeedPosition, format_token
from payments.models import Access
from payments.rows import RowValues


class SelectionFilter(BaseFilterBackend):
    """Applies the filters in the query string of a request, such as `status=open`."""

    def filter_queryset(self, request: Request, queryset: Any, view: APIView) -> Any:
        """Return the payments that match. The view's `KeysetPagination` parses the query string.

        :raises InvalidParameter: for the first invalid parameter
        """
        paginator: KeysetPagination = view.paginator  # type: ignore[attr-defined]  # of a GenericAPIView
        filters = paginator.read_parameters(request).selection.filters
        return select(queryset, filters) if filters else queryset


class KeysetPagination(BasePagination):
    """Pages by position: a link names the payment that the next page starts at.

    It works in any view over payments. `from` is a payment of the view's `get_queryset()`; the page consists of
    payments that also match the view's filters.

    The views of this API evaluate no QuerySet. `get_query` returns the compiled statement for the same page, and
    `paginate_content` takes what the statement has read.
    """

    request: HttpRequest | Request | None = None
    parameters = ListParameters()
    page = Page([])

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Return the payments of the page that the request asks for.

        :raises InvalidParameter: a parameter is invalid, or `from` is unknown
        """
        limit, start, selection = self.read_parameters(request)
        try:
            self.page = evaluate_page(
                queryset, within=view.get_queryset(), start=start, limit=limit, order=selection.order
            )
        except UnknownStart:
            raise invalid_from() from None
        return self.page.rows

    def get_query(self, payments: Any, request: HttpRequest | Request) -> Query:
        """Return the query for the page of `payments`, whose access is bound when it runs.

        :raises InvalidParameter: for the first invalid parameter
        """
        limit, start, selection = self.read_parameters(request)
        return page_query(payments, within=visible_payments(), selection=selection, start=start, limit=limit)

    def paginate_content(self, content: Content, request: Request) -> list[RowValues]:
        """Return the payments that the page's query has read.

        :raises InvalidParameter: `from` is unknown
        """
        try:
            self.page = page_of_content(content, start=self.parameters.start, limit=self.parameters.limit)
        except UnknownStart:
            raise invalid_from() from None
        return self.page.rows

    def read_parameters(self, request: HttpRequest | Request) -> ListParameters:
        """Return the parameters of a request. They are parsed once.

        :raises InvalidParameter: for the first invalid parameter
        """
        if self.request is not request:
            self.parameters = parse_list_parameters(query_string(request.META))
            self.request = request
        return self.parameters

    def get_paginated_response(self, data: Sequence[Any]) -> Response:
        request: Any = self.request
        return Response(to_builtins(self.get_document(data, path=request.path, links=Links.of(request))))

    def get_document(self, records: Sequence[Any], *, path: str, links: Links) -> dict[str, Any]:
        """Return the HAL document of the page.

        `self` names the page's first payment, so the link still leads to this page when newer payments have arrived.
        """
        (limit, start, selection), page = self.parameters, self.page
        link = partial(links.page, path, limit=limit, query=selection.query)
        return page_document(
            records,
            itself=link(start=page.first_id or start),
            previous=link(start=page.previous_from) if page.previous_from else None,
            next=link(start=page.next_from) if page.next_from else None,
            documentation=Link(links.section("list-payments"), HTML),
        )


class ChangesPagination(BasePagination):
    """Pages by change: a link contains a token, which stands for a position in the feed."""

    parameters = ChangesParameters()
    page: ChangesPage

    def get_query(self, payments: Any, request: HttpRequest | Request) -> Query:
        """Return the query for the page that the request asks for.

        :raises InvalidParameter: for the first invalid parameter
        """
        self.parameters = parse_changes_parameters(query_string(request.META))
        limit, token, position = self.parameters
        return end_query() if token == NOW else changes_query(position, limit=limit)

    def paginate_content(self, content: Content, request: Request) -> list[RowValues]:
        """Return the payments that the page's query has read.

        :raises InvalidParameter: the token is one of another organization or mode
        :raises LostChanges: the database does not know the token
        """
        limit, token, position = self.parameters
        access: Access = request.auth.access  # type: ignore[union-attr]  # an `AuthenticatedKey`
        if token == NOW:
            self.page = build_end(content, access)
            return []
        if position is not None and position.access != access:
            raise invalid_token()
        try:
            self.page = build_changes_page(content, position or FeedPosition(*access), limit=limit)
        except UnknownPosition:
            raise LostChanges from None
        return self.page.rows

    def get_document(self, records: Sequence[Any], *, path: str, links: Links) -> dict[str, Any]:
        """Return the HAL document of the page."""
        limit, token, _ = self.parameters
        link = partial(links.page, path, limit=limit)
        later = link(start=format_token(self.page.later))
        return page_document(
            records,
            itself=link(start=token),
            next=later if self.page.has_next else None,
            later=later,
            documentation=Link(links.section("list-changes"), HTML),
        )


def page_document(records: Sequence[Any], *, itself: Link, **links: Link | None) -> dict[str, Any]:
    """Return the HAL document of a page. A link that is None is omitted: HAL has no null link."""
    return {
        "count": len(records),
        "_embedded": {"payments": records},
        "_links": {"self": itself} | {name: link for name, link in links.items() if link is not None},
    }
