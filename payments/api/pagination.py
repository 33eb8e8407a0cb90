"""Keyset pagination of the list: reads its parameters, fetches the page, and builds its HAL envelope."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from django.db import OperationalError
from rest_framework.pagination import BasePagination

from payments import hal
from payments.api.errors import InvalidParameter, QueryTimeout
from payments.api.parameters import ListParameters, invalid_from, parse_list_parameters
from payments.database.round_trips import Query
from payments.filters import Selection
from payments.hal import HAL, HTML, Link
from payments.links import Links
from payments.listing import Listing
from payments.models import Access
from payments.page import Page, UnknownStart, fetch_page, page_query
from payments.routing import find_payment
from payments.rows import ID
from payments.runtime.database_errors import is_timeout

ParametersT = TypeVar("ParametersT")


class ParsedPagination(BasePagination, Generic[ParametersT]):
    """Parses the query string of a request at once, and reports its first error after the key has been checked."""

    def __init__(self, query_string: str) -> None:
        self.errors: list[InvalidParameter] = []  # at most one; `validate` raises it
        try:
            self.parameters = self.parse(query_string)
        except InvalidParameter as error:
            self.errors.append(error)
        self.is_valid = not self.errors

    def parse(self, query_string: str) -> ParametersT:
        """Return the parameters.

        :raises InvalidParameter: for the first invalid parameter
        """
        raise NotImplementedError

    def validate(self, listing: Callable[[], Listing]) -> None:
        """Check the parameters. `listing` is called only if the error depends on it.

        :raises InvalidParameter: for the first invalid parameter
        """
        if not self.is_valid:
            raise self.errors.pop()  # an exception that is raised refers to this object; it must not refer to that one


class KeysetPagination(ParsedPagination[ListParameters]):
    """Pages by position: a link names the payment that the next page starts at.

    DRF's `paginate_queryset` is not used: the page is fetched by a compiled statement, not from a QuerySet.
    """

    parameters = ListParameters()

    def parse(self, query_string: str) -> ListParameters:
        return parse_list_parameters(query_string)

    @property
    def selection(self) -> Selection:
        return self.parameters.selection

    @property
    def identity(self) -> tuple[Any, ...]:
        """Return the values that identify the page, apart from its payments."""
        return self.parameters.limit, self.parameters.start, self.selection.query

    def queries_for(self, access: Access) -> list[Query]:
        """Return the query that `paginate` needs. The parameters must be valid."""
        parameters = self.parameters
        return [page_query(Listing(access, self.selection), start=parameters.start, limit=parameters.limit)]

    def validate(self, listing: Callable[[], Listing]) -> None:
        """Check the parameters. `listing` is called only if an unknown `from` would be the first error.

        :raises InvalidParameter: for the first invalid parameter; `paginate` finds other unknown values of `from`
        """
        error_start = None if self.is_valid else self.errors[0].start
        if error_start is not None and not find_payment(listing(), error_start).rows:
            raise invalid_from()
        super().validate(listing)

    def paginate(self, listing: Listing) -> Page:
        """Return the page of a listing with the request's selection. The parameters must be valid.

        :raises InvalidParameter: `from` is unknown
        :raises QueryTimeout: a query with filters exceeded its time limit
        """
        parameters = self.parameters
        try:
            return fetch_page(listing, start=parameters.start, limit=parameters.limit)
        except UnknownStart:
            raise invalid_from() from None
        except OperationalError as error:
            if self.selection.filters and is_timeout(error):
                raise QueryTimeout from error
            raise

    def envelope(self, page: Page, records: Sequence[Any], *, links: Links) -> dict[str, Any]:
        """Return the HAL document of a page.

        `self` names the page's first payment, so the link still leads to this page when newer payments have arrived.
        """
        parameters, query = self.parameters, self.selection.query

        def link(start: str | None) -> Link:
            return Link(href=links.page(limit=parameters.limit, start=start, query=query), type=HAL)

        page_links = {
            "self": link(page.rows[0][ID] if page.rows else parameters.start),
            "previous": link(page.previous_from) if page.previous_from else None,
            "next": link(page.next_from) if page.next_from else None,
            "documentation": Link(href=links.section("list-payments"), type=HTML),
        }
        return hal.page("payments", records, links=page_links)
