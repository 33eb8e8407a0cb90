"""A response never carries a revision that is newer than its payments: it would stay unchanged for ever."""

from typing import Any

import pytest

from payments import page, routing
from payments.database.round_trips import NOTHING, Query
from payments.listing import Listing
from payments.models import Organization, Payment
from payments.routing import Fetched, read_revision
from tests.support.api import Api
from tests.support.factories import PaymentFactory

pytestmark = pytest.mark.only("postgresql", "citus")


@pytest.mark.parametrize("is_wrong", [False, True])
def test_change_after_the_page_was_read_is_noticed(
    api: Api, organization: Organization, monkeypatch: pytest.MonkeyPatch, is_wrong: bool
) -> None:
    """The wrong implementation reads the revision after the page."""
    PaymentFactory.create(organization=organization, description="old")

    def fetch_and_change(listing: Listing, query: Query, **options: Any) -> Fetched:
        fetched = routing.fetch_rows(listing, query, **options)
        Payment.objects.update(description="new")
        return fetched._replace(revision=read_revision(listing.access, NOTHING)) if is_wrong else fetched

    with monkeypatch.context() as patch:
        patch.setattr(page, "fetch_rows", fetch_and_change)
        read = api.get()

    polled = api.send("GET", "/v2/payments", If_None_Match=read["ETag"])

    assert read.json()["_embedded"]["payments"][0]["description"] == "old"
    assert (polled.status_code == 304) == is_wrong
