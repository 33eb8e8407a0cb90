"""Pagination of the change feed: reads its parameters, fetches the page, and builds its HAL envelope."""

from collections.abc import Callable, Sequence
from typing import Any

from rest_framework.pagination import BasePagination

from payments import hal
from payments.api.errors import InvalidParameter, LostChanges
from payments.api.parameters import NOW, ChangesParameters, invalid_token, parse_changes_parameters
from payments.changes import ChangesPage, UnknownPosition, changes_query, end_query, fetch_changes, fetch_end
from payments.database.round_trips import Query
from payments.filters import EVERYTHING
from payments.hal import HAL, HTML, Link
from payments.links import Links
from payments.listing import Listing
from payments.models import Access
from payments.tokens import Position, format_token


class ChangesPagination(BasePagination):
    """Pages by change: a link contains a token, which stands for a position in the feed."""

    parameters = ChangesParameters()
    selection = EVERYTHING

    def __init__(self, query_string: str) -> None:
        self.errors: list[InvalidParameter] = []  # at most one; `validate` raises it, after the key has been checked
        try:
            self.parameters = parse_changes_parameters(query_string)
        except InvalidParameter as error:
            self.errors.append(error)
        self.is_valid = not self.errors

    @property
    def identity(self) -> tuple[Any, ...]:
        """Return the values that identify the page, apart from its payments."""
        return "changes", self.parameters.limit, self.token

    @property
    def token(self) -> str | None:
        """Return the value of `from`."""
        if self.parameters.is_now:
            return NOW
        position = self.parameters.position
        return None if position is None else format_token(position)

    def queries_for(self, access: Access) -> list[Query]:
        """Return the query that `paginate` needs; none if it would refuse the token. The parameters must be valid."""
        limit, position, is_now = self.parameters
        listing = Listing(access)
        if is_now:
            return [end_query(listing)]
        if position and position.access != access:
            return []
        return [changes_query(listing, position or Position(*access), limit=limit)]

    def validate(self, listing: Callable[[], Listing]) -> None:
        """Check the parameters; `paginate` checks whether the key and the database know the token.

        :raises InvalidParameter: for the first invalid parameter
        """
        if not self.is_valid:
            raise self.errors.pop()

    def paginate(self, listing: Listing) -> ChangesPage:
        """Return the page. The parameters must be valid.

        :raises InvalidParameter: the token is one of another organization or mode
        :raises LostChanges: the database does not know the token
        """
        limit, position, is_now = self.parameters
        if is_now:
            return fetch_end(listing)
        if position and position.access != listing.access:
            raise invalid_token()
        try:
            return fetch_changes(listing, position, limit=limit)
        except UnknownPosition:
            raise LostChanges from None

    def envelope(self, page: ChangesPage, records: Sequence[Any], *, links: Links) -> dict[str, Any]:
        """Return the HAL document of a page."""

        def link(token: str | None) -> Link:
            return Link(href=links.changes_page(limit=self.parameters.limit, token=token), type=HAL)

        later = link(format_token(page.later))
        page_links = {
            "self": link(self.token),
            "next": later if page.has_next else None,
            "later": later,
            "documentation": Link(href=links.documentation, type=HTML),
        }
        return hal.page("payments", records, links=page_links)
