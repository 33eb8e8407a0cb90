"""A statement with the condition of a replica returns payments only at their own revision."""

import pytest

from payments.listing import Listing, payment_statement
from payments.models import Access, AccessState, Mode
from tests.support.factories import OrganizationFactory, PaymentFactory

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
@pytest.mark.parametrize("at", [*ACCESSES, None], ids=str)
def test_payment_is_returned_only_at_the_revision_of_its_organization_and_mode(
    payments: dict[Access, str], access: Access, at: Access | None
) -> None:
    revision = AccessState.objects.get(**at._asdict()).revision if at else 0
    values = {**Listing(access).values(start=payments[access]), "revision": revision}

    rows = payment_statement().rows(values, if_condition=True)

    assert len(rows) == (at == access)


def test_payment_without_a_state_is_not_returned(payments: dict[Access, str]) -> None:
    """The revision 0 of a missing row is not confirmed by another missing row."""
    AccessState.objects.all().delete()
    values = {**Listing(ACCESSES[0]).values(start=payments[ACCESSES[0]]), "revision": 0}

    assert payment_statement().rows(values, if_condition=True) == []
