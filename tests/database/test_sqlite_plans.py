"""Query plans of the change feed on SQLite, with and without statistics: a page looks up payments by their change."""

from functools import partial
from pathlib import Path

import pytest

from payments.listing.tokens import FeedPosition, format_token
from payments.models import Access, Payment
from tests.support.connecting import connected_to
from tests.support.factories import OrganizationFactory
from tests.support.lists import build_payment, plan_of, read_changes
from tests.support.migrated import fresh_database
from tests.support.sql import execute

pytestmark = pytest.mark.only("sqlite")

ACCESS = Access(1, "live")


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_page_of_the_feed_looks_up_payments_by_their_change(tmp_path: Path, is_analyzed: bool) -> None:
    with fresh_database(tmp_path) as url, connected_to(url):
        organization = OrganizationFactory.create(id=ACCESS.organization_id)
        Payment.objects.bulk_create(
            build_payment(organization, "live", number, f"{number:04}") for number in range(1000)
        )
        if is_analyzed:
            execute("ANALYZE")
        plans = [plan_of_page(number=number) for number in (1, 2)]

    lookup = "SEARCH payments_payment USING INDEX payment_change (change_id=? AND organization_id=? AND mode=?)"
    assert all(lookup in plan for plan in plans), plans


def plan_of_page(*, number: int) -> str:
    """Return the query plan of a page that starts at a change."""
    token = format_token(FeedPosition(*ACCESS, number=number))
    return plan_of(partial(read_changes, ACCESS, {"from": token}))
