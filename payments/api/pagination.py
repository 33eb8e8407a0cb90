"""Keyset pagination: pages of the list and of the change feed, as HAL documents."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from msgspec import to_builtins
from rest_framework.filters import BaseFilterBackend
from rest_framework.generics import GenericAPIView
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
    parse_page_parameters,
    query_string,
)
from payments.hal import HTML, Link
from payments.listing.content import Content, Query
from payments.listing.feed import (
    ChangesPage,
    UnknownPosition,
    build_changes_page,
    changes_query,
    end_position,
    end_query,
)
from payments.listing.page import Page, UnknownStart, evaluate_page, page_of_content, page_query
from payments.listing.query import select, visible_payments
from payments.listing.tokens import FeedPosition, format_token
from payments.models import Access
from payments.rows import RowValues


class SelectionFilter(BaseFilterBackend):
    """Applies the filters and the order in a request's query string, such as `status=open`, with `KeysetPagination`.

    It refuses parameters that this API does not have, so it is the only filter of a view that reads the query string.
    """

    def filter_queryset(self, request: HttpRequest | Request, queryset: Any, view: APIView) -> Any:
        """Return the payments that match, and tell the view's paginator what the request asks for."""
        paginator = getattr(view, "paginator", None)
        if not isinstance(paginator, KeysetPagination):
            raise ImproperlyConfigured("A view with SelectionFilter needs pagination_class = KeysetPagination.")
        parameters = paginator.parameters = parse_list_parameters(query_string(request.META))
        filters = parameters.selection.filters
        return select(queryset, filters) if filters else queryset


class KeysetPagination(BasePagination):
    """Pages by position: a link names the payment that the next page starts at.

    It works in any view over payments. `from` is a payment of the view's `get_queryset()`; the page consists of
    payments that also match the view's filters. Without `SelectionFilter`, links keep all other parameters.

    The views of this API evaluate no QuerySet. `get_query` returns the compiled statement for the same page, and
    `paginate_content` takes what the statement has read.
    """

    request: Request
    parameters: ListParameters | None = None  # `SelectionFilter` sets them
    page: Page

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.request = request
        if self.parameters is None:
            self.parameters = parse_page_parameters(query_string(request.META))
        limit, start, selection = self.parameters
        within = view.get_queryset() if selection.filters or has_own_filters(view) else queryset
        try:
            self.page = evaluate_page(queryset, within=within, start=start, limit=limit, order=selection.order)
        except UnknownStart:
            raise invalid_from() from None
        return self.page.rows

    def get_query(self, payments: Any, _request: HttpRequest) -> Query:
        """Return the query for the page of `payments`, which `SelectionFilter` has filtered.

        The access of the payments is bound when the query runs.
        """
        limit, start, selection = self.parameters or ListParameters()
        return page_query(payments, within=visible_payments(), selection=selection, start=start, limit=limit)

    def paginate_content(self, content: Content, request: Request) -> list[RowValues]:
        """Return the payments that the page's query has read."""
        limit, start, _ = self.parameters or ListParameters()
        try:
            self.page = page_of_content(content, start=start, limit=limit)
        except UnknownStart:
            raise invalid_from() from None
        return self.page.rows

    def get_paginated_response(self, data: Sequence[Any]) -> Response:
        document = self.get_document(data, path=self.request.path, links=Links.of(self.request))
        return Response(to_builtins(document))

    def get_document(self, records: Sequence[Any], *, path: str, links: Links) -> dict[str, Any]:
        """Return the HAL document of the page.

        `self` names the page's first payment, so the link still leads to this page when newer payments have arrived.
        """
        (limit, start, selection), page = self.parameters or ListParameters(), self.page
        link = partial(links.page, path, limit=limit, query=selection.query)
        return page_document(
            records,
            itself=link(start=page.first_id or start),
            previous=link(start=page.previous_from) if page.previous_from else None,
            next=link(start=page.next_from) if page.next_from else None,
            documentation=Link(links.section("list-payments"), HTML),
        )


def has_own_filters(view: Any) -> bool:
    """Return whether a view filters its payments by more than `SelectionFilter`."""
    if not isinstance(view, GenericAPIView):
        return False
    uses_only_backends = type(view).filter_queryset is GenericAPIView.filter_queryset
    return not uses_only_backends or any(not issubclass(each, SelectionFilter) for each in view.filter_backends)


class ChangesPagination(BasePagination):
    """Pages by change: a link contains a token, which stands for a position in the feed."""

    parameters = ChangesParameters()
    page: ChangesPage

    def get_query(self, _payments: Any, request: HttpRequest) -> Query:
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
            self.page = ChangesPage([], end_position(access, content.state), has_next=False)
            return []
        if position is not None and position.access != access:
            raise invalid_token()
        try:
            self.page = build_changes_page(content, position or FeedPosition(*access), limit=limit)
        except UnknownPosition:
            raise LostChanges from None
        return self.page.rows

    def get_document(self, records: Sequence[Any], *, path: str, links: Links) -> dict[str, Any]:
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
