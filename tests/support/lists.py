"""Lists of payments: stored, selected and walked in this process."""

from datetime import datetime, timedelta
from urllib.parse import urlencode

from payments.api.parameters import parse_list_parameters
from payments.listing import Listing
from payments.models import Access, Organization, Payment
from payments.page import Page, fetch_page
from tests.support.factories import NOON, PaymentFactory


def moment(instant: int) -> datetime:
    return NOON + timedelta(milliseconds=instant)


def placed(organization: Organization, mode: str, instant: int, name: str) -> Payment:
    created_at = NOON + timedelta(milliseconds=instant)
    return PaymentFactory.build(organization=organization, mode=mode, created_at=created_at, id=f"pt_{name}")


def listing(access: Access, query: dict[str, str]) -> Listing:
    return Listing(access, parse_list_parameters(urlencode(query), is_known=lambda _: True).selection)


def there_and_back(listing: Listing, *, limit: int) -> tuple[list[Page], list[Page]]:
    """Walk to the list's end, and from there to its beginning."""
    there = [fetch_page(listing, start=None, limit=limit)]
    while start := there[-1].next_from:
        there.append(fetch_page(listing, start=start, limit=limit))
    back = [there[-1]]
    while start := back[-1].previous_from:
        back.append(fetch_page(listing, start=start, limit=limit))
    return there, back
