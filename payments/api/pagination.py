"""Keyset pagination: reads the parameters of a list, fetches the page, and builds its HAL envelope."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.db import OperationalError
from django.utils.functional import cached_property
from rest_framework.pagination import BasePagination

from payments import hal
from payments.api.errors import InvalidParameter, QueryTimeout
from payments.api.parameters import ListParameters, invalid_from, parse_list_parameters
from payments.database.round_trips import Query
from payments.hal import HAL, HTML, Link
from payments.links import Links
from payments.listing import Listing
from payments.models import Access
from payments.page import Page, UnknownStart, fetch_page, page_query
from payments.routing import find_payment
from payments.rows import ID
from payments.runtime.database_errors import is_timeout


class ListPage(NamedTuple):
    """A page and the parameters of its request."""

    parameters: ListParameters
    page: Page


class KeysetPagination(BasePagination):
    """Pages by position: a link names the payment that the next page starts at.

    DRF's `paginate_queryset` is not used: the page is fetched by a compiled statement, not from a QuerySet.
    """

    def __init__(self, query_string: str) -> None:
        self.query_string = query_string

    @cached_property
    def parameters(self) -> ListParameters:
        return parse_list_parameters(self.query_string)

    @property
    def is_valid(self) -> bool:
        try:
            return self.parameters is not None
        except InvalidParameter:
            return False

    def queries_for(self, access: Access) -> list[Query]:
        """Return the query that `paginate` needs. The parameters must be valid."""
        parameters = self.parameters
        listing = Listing(access, parameters.selection)
        return [page_query(listing, start=parameters.start, limit=parameters.limit)]

    def validate(self, listing: Callable[[], Listing]) -> ListParameters:
        """Return the parameters. `listing` is called only if an unknown `from` would be the first error.

        :raises InvalidParameter: for the first invalid parameter; `paginate` finds other unknown values of `from`
        """
        try:
            return self.parameters
        except InvalidParameter as error:
            if error.start is not None and not find_payment(listing(), error.start).rows:
                raise invalid_from() from None
            raise

    def paginate(self, listing: Listing) -> ListPage:
        """Return the page. The parameters must be valid.

        :raises InvalidParameter: `from` is unknown
        :raises QueryTimeout: a query with filters exceeded its time limit
        """
        parameters = self.parameters
        selected = listing._replace(selection=parameters.selection)
        try:
            return ListPage(parameters, fetch_page(selected, start=parameters.start, limit=parameters.limit))
        except UnknownStart:
            raise invalid_from() from None
        except OperationalError as error:
            if parameters.selection.filters and is_timeout(error):
                raise QueryTimeout from error
            raise

    def envelope(self, listed: ListPage, records: Sequence[Any], *, links: Links) -> dict[str, Any]:
        """Return the HAL document of a page.

        `self` names the page's first payment, so the link still leads to this page when newer payments have arrived.
        """
        parameters, page = listed

        def link(start: str | None) -> Link:
            return Link(
                href=links.page(limit=parameters.limit, start=start, query=parameters.selection.query), type=HAL
            )

        page_links = {
            "self": link(page.rows[0][ID] if page.rows else parameters.start),
            "previous": link(page.previous_from) if page.previous_from else None,
            "next": link(page.next_from) if page.next_from else None,
            "documentation": Link(href=links.documentation, type=HTML),
        }
        return hal.page("payments", records, links=page_links)
