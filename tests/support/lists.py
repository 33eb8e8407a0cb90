"""Lists of payments that a test builds, selects and walks in this process."""

from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from payments.api.parameters import parse_list_parameters
from payments.listing import Listing
from payments.models import Access, Organization, Payment
from payments.page import Page, fetch_page
from payments.rows import ID
from tests.support.factories import NOON, PaymentFactory


def noon_plus(milliseconds: int) -> datetime:
    return NOON + timedelta(milliseconds=milliseconds)


def build_payment(organization: Organization, mode: str, milliseconds: int, name: str) -> Payment:
    """Return an unsaved payment that was created so many milliseconds after noon."""
    return PaymentFactory.build(
        organization=organization, mode=mode, created_at=noon_plus(milliseconds), id=f"pt_{name}"
    )


def build_listing(access: Access, query: dict[str, str]) -> Listing:
    """Return the listing that the parameters of a query select."""
    return Listing(access, parse_list_parameters(urlencode(query)).selection)


class PageIds(NamedTuple):
    """A page, with the IDs of its payments instead of their rows."""

    ids: list[str]
    previous_from: str | None
    next_from: str | None


def page_ids(page: Page) -> PageIds:
    return PageIds([row[ID] for row in page.rows], page.previous_from, page.next_from)


def walk_both_ways(listing: Listing, *, limit: int) -> tuple[list[Page], list[Page]]:
    """Return the pages on the way to the end of the list, and those on the way back to its start."""
    forward = [fetch_page(listing, start=None, limit=limit)]
    while start := forward[-1].next_from:
        forward.append(fetch_page(listing, start=start, limit=limit))
    backward = [forward[-1]]
    while start := backward[-1].previous_from:
        backward.append(fetch_page(listing, start=start, limit=limit))
    return forward, backward
