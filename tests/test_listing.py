"""The statements of a list return payments together with the revision of their organization and mode."""

import pytest

from payments.listing import Listing
from payments.models import Access, AccessState, Mode
from payments.page import fetch_page
from payments.routing import find_payment
from tests.support.factories import OrganizationFactory, PaymentFactory

pytestmark = pytest.mark.also("citus")

ACCESSES = [Access(organization_id, mode) for organization_id in (1001, 1002) for mode in Mode.values]


@pytest.fixture
def payments(db: None) -> dict[Access, str]:
    """The ID of one payment of each organization and mode."""
    organizations = {number: OrganizationFactory.create(id=number) for number in (1001, 1002)}
    return {
        access: PaymentFactory.create(organization=organizations[access.organization_id], mode=access.mode).id
        for access in ACCESSES
    }


@pytest.mark.parametrize("access", ACCESSES, ids=str)
def test_payments_come_with_the_revision_of_their_organization_and_mode(
    payments: dict[Access, str], access: Access
) -> None:
    revision = AccessState.objects.get(**access._asdict()).revision
    listing, payment_id = Listing(access), payments[access]

    pages = [fetch_page(listing, start=start, limit=1) for start in (None, payment_id)]
    found = find_payment(listing, payment_id)

    assert [(row[0], page.revision) for page in pages for row in page.rows] == [(payment_id, revision)] * 2
    assert (found.rows[0][0], found.revision) == (payment_id, revision)


def test_empty_page_has_a_revision(db: None) -> None:
    """A client that polls an empty list gets 304 without the page, even if its filter is slow."""
    access = Access(OrganizationFactory.create().id, "live")
    AccessState.objects.record({access: [7]})

    page = fetch_page(Listing(access), start=None, limit=1)

    assert page.rows == []
    assert page.revision == 7


def test_payments_without_a_state_have_the_revision_0(payments: dict[Access, str]) -> None:
    AccessState.objects.all().delete()

    page = fetch_page(Listing(ACCESSES[0]), start=None, limit=1)

    assert len(page.rows) == 1
    assert page.revision == 0
