"""Pagination of the change feed: reads its parameters, fetches the page, and builds its HAL envelope."""

from collections.abc import Sequence
from typing import Any

from payments import hal
from payments.api.errors import LostChanges
from payments.api.pagination import ParsedPagination
from payments.api.parameters import NOW, ChangesParameters, invalid_token, parse_changes_parameters
from payments.changes import ChangesPage, UnknownPosition, changes_query, end_query, fetch_changes, fetch_end
from payments.database.round_trips import Query
from payments.filters import EVERYTHING
from payments.hal import HAL, HTML, Link
from payments.links import Links
from payments.listing import Listing
from payments.models import Access
from payments.tokens import Position, format_token


class ChangesPagination(ParsedPagination[ChangesParameters]):
    """Pages by change: a link contains a token, which stands for a position in the feed.

    `paginate` checks whether the key and the database know the token.
    """

    parameters = ChangesParameters()
    selection = EVERYTHING

    def parse(self, query_string: str) -> ChangesParameters:
        return parse_changes_parameters(query_string)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Return the values that identify the page, apart from its payments."""
        return "changes", self.parameters.limit, self.parameters.token

    def position(self, access: Access) -> Position:
        return self.parameters.position or Position(*access)

    def queries_for(self, access: Access) -> list[Query]:
        """Return the query that `paginate` needs; none if it would refuse the token. The parameters must be valid."""
        if self.parameters.token == NOW:
            return [end_query(Listing(access))]
        position, limit = self.position(access), self.parameters.limit
        return [changes_query(Listing(access), position, limit=limit)] if position.access == access else []

    def paginate(self, listing: Listing) -> ChangesPage:
        """Return the page. The parameters must be valid.

        :raises InvalidParameter: the token is one of another organization or mode
        :raises LostChanges: the database does not know the token
        """
        if self.parameters.token == NOW:
            return fetch_end(listing)
        position = self.position(listing.access)
        if position.access != listing.access:
            raise invalid_token()
        try:
            return fetch_changes(listing, position, limit=self.parameters.limit)
        except UnknownPosition:
            raise LostChanges from None

    def envelope(self, page: ChangesPage, records: Sequence[Any], *, links: Links) -> dict[str, Any]:
        """Return the HAL document of a page."""

        def link(token: str | None) -> Link:
            return Link(href=links.changes_page(limit=self.parameters.limit, token=token), type=HAL)

        later = link(format_token(page.later))
        page_links = {
            "self": link(self.parameters.token),
            "next": later if page.has_next else None,
            "later": later,
            "documentation": Link(href=links.section("list-changes"), type=HTML),
        }
        return hal.page("payments", records, links=page_links)
