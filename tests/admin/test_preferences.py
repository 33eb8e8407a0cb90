"""The admin remembers each user's columns; pages have the organization and mode of their address."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from payments.models import StaffPreferences
from tests.support.factories import OrganizationFactory, PaymentFactory

pytestmark = pytest.mark.also("citus")

LIST = "/admin/payments/payment/"


@pytest.fixture(autouse=True)
def payments(db: None) -> None:
    for number in (1, 2):
        organization = OrganizationFactory.create(id=number)
        PaymentFactory.create(organization=organization, customer_id="ct_1", metadata='{"order":"84820"}')
        PaymentFactory.create(organization=organization, test=True)


def selected(page: str) -> tuple[str, str]:
    """Return the organization and mode that the page's form has."""
    values = re.findall(r'<input type="hidden" name="(?:organization|mode)" value="(\w+)" id', page)
    return values[0], values[1]


def titles(page: str) -> list[str]:
    return re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', page)


def test_removed_organization_is_not_the_default(admin_client: Client) -> None:
    StaffPreferences.objects.create(user=User.objects.get(), organization_id=99, mode="test")

    assert selected(admin_client.get(LIST).content.decode()) == ("1", "test")


def test_links_of_the_header_keep_the_organization_and_mode(admin_client: Client) -> None:
    page = admin_client.get(LIST, {"organization": "2", "mode": "test", "status": "succeeded"}).content.decode()

    assert 'href="/admin/?organization=2&amp;mode=test">Overview' in page
    assert 'href="/admin/payments/payment/?organization=2&amp;mode=test" aria-current="page">Payments' in page


def test_test_mode_has_a_banner(admin_client: Client) -> None:
    pages = [admin_client.get(LIST, {"mode": mode}).content.decode() for mode in ("live", "test")]

    assert ["test-banner" in page for page in pages] == [False, True]
    assert ["test-mode" in page for page in pages] == [False, True]


def test_columns_can_be_chosen(admin_client: Client) -> None:
    default = admin_client.get(LIST).content.decode()
    chosen = admin_client.post(
        f"{LIST}columns", {"column": ["method", "metadata", "unknown"], "query": "mode=live&q=order"}, follow=True
    )
    again = admin_client.get(LIST).content.decode()
    admin_client.post(f"{LIST}columns", {"default": "1", "column": "method"})

    assert titles(default) == ["Amount", "Status", "Order or description", "Method or card", "Customer", "ID"]
    assert titles(again) == ["Amount", "Metadata", "Method or card", "ID"]
    assert "Visa •• 4242" in again
    assert "order: 84820" in re.sub(r"<[^>]+>", "", again)
    assert chosen.redirect_chain[0][0] == f"{LIST}?organization=1&mode=live&q=order"
    assert titles(admin_client.get(LIST).content.decode()) == titles(default)


def test_list_by_paid_day_shows_when_each_payment_was_paid(admin_client: Client) -> None:
    page = admin_client.get(LIST, {"since": "2026-01-01", "by": "paid"}).content.decode()

    assert titles(page) == ["Amount", "Status", "Order or description", "Method or card", "Paid", "Customer", "ID"]
