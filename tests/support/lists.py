"""The list and the feed as the product reads them in this process, and the statements that it sends for them.

A test states who reads and the parameters of the request. Only this module, and wrong implementations in tests of
promises, name the parts that read payments.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlencode

from django.db import connection
from django.test.utils import CaptureQueriesContext

from payments.api.parameters import parse_changes_parameters, parse_list_parameters
from payments.listing.feed import ChangesPage, end_position, end_query, fetch_changes
from payments.listing.page import fetch_page
from payments.listing.query import Listing
from payments.listing.tokens import FeedPosition, format_token
from payments.models import Access, Organization, Payment
from payments.rows import named
from tests.support.factories import NOON, PaymentFactory
from tests.support.sql import explain

# A list as `payments.admin.payments.search` takes it.
SearchableList: TypeAlias = Listing


def noon_plus(milliseconds: int) -> datetime:
    return NOON + timedelta(milliseconds=milliseconds)


def build_payment(organization: Organization, mode: str, milliseconds: int, name: str) -> Payment:
    """Return an unsaved payment that was created so many milliseconds after noon."""
    return PaymentFactory.build(
        organization=organization, mode=mode, created_at=noon_plus(milliseconds), id=f"pt_{name}"
    )


class ListPage(NamedTuple):
    """The IDs of a page's payments, and those that the neighbouring pages start at."""

    ids: list[str]
    previous: str | None
    next: str | None


class FeedPage(NamedTuple):
    """The IDs of a page's payments, and the token of the position after them."""

    ids: list[str]
    later: str
    has_next: bool


def read_page(access: Access, parameters: Mapping[str, Any] | None = None) -> ListPage:
    """Return the page of the list that a request with these parameters gets. A parameter may be None.

    :raises LookupError: `from` is no payment that the access covers
    """
    parsed = parse_list_parameters(query_string(parameters))
    return read_list(Listing(access, parsed.selection), start=parsed.start, limit=parsed.limit)


def read_changes(access: Access, parameters: Mapping[str, Any] | None = None) -> FeedPage:
    """Return the page of the change feed that a request with these parameters gets.

    :raises LookupError: `from` is a token that the database does not know
    """
    parsed = parse_changes_parameters(query_string(parameters))
    if parsed.token == "now":  # noqa: S105
        page = ChangesPage([], end_position(access, end_query().read(access).state), has_next=False)
    else:
        page = fetch_changes(parsed.position or FeedPosition(*access), limit=parsed.limit)
    return FeedPage([named(row).id for row in page.rows], format_token(page.later), page.has_next)


def query_string(parameters: Mapping[str, Any] | None) -> str:
    return urlencode({name: value for name, value in (parameters or {}).items() if value is not None})


def searchable_list(access: Access, parameters: Mapping[str, Any] | None = None) -> SearchableList:
    """Return the list that the parameters of a query select. The admin can add a search to it."""
    return Listing(access, parse_list_parameters(query_string(parameters)).selection)


def read_list(payments: SearchableList, *, start: str | None = None, limit: int) -> ListPage:
    return list_page(fetch_page(payments, start=start, limit=limit))


def list_page(page: Any) -> ListPage:
    """Return the IDs of a page of the product."""
    return ListPage([named(row).id for row in page.rows], page.previous_from, page.next_from)


def walk_both_ways(read: Callable[[str | None], ListPage]) -> tuple[list[ListPage], list[ListPage]]:
    """Return the pages on the way to the end of the list, and those on the way back. `read` gets a page's start."""
    forward = [read(None)]
    while start := forward[-1].next:
        forward.append(read(start))
    backward = [forward[-1]]
    while start := backward[-1].previous:
        backward.append(read(start))
    return forward, backward


def statement_of(read: Callable[[], object]) -> str:
    """Return the last statement that a read sends, with its values."""
    with CaptureQueriesContext(connection) as statements:
        read()
    return str(statements[-1]["sql"])


def plan_of(read: Callable[[], object]) -> str:
    """Return the query plan of the last statement that a read sends, for its values."""
    return explain(statement_of(read))
