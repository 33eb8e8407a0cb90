"""The admin remembers each user's organization, mode and columns."""

import re

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client

from payments.models import StaffPreferences
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.list_errors import failing_queries

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
    values = re.findall(r'<option value="(\w+)" selected>', page)
    return values[0], values[1]


def titles(page: str) -> list[str]:
    return re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', page)


def test_last_organization_and_mode_are_the_default(admin_client: Client) -> None:
    first = admin_client.get(LIST).content.decode()
    admin_client.get(LIST, {"organization": "2", "mode": "test"})
    later = admin_client.get(LIST).content.decode()
    other_user = Client()
    other_user.force_login(User.objects.create_superuser("other"))

    assert selected(first) == ("1", "live")
    assert selected(later) == ("2", "test")
    assert selected(other_user.get(LIST).content.decode()) == ("1", "live")


def test_page_without_a_selection_stores_nothing(admin_client: Client) -> None:
    admin_client.get(LIST, {"status": "failed"})
    admin_client.get(LIST, {"organization": "99"})

    assert not StaffPreferences.objects.exists()


def test_removed_organization_is_not_the_default(admin_client: Client) -> None:
    StaffPreferences.objects.create(user=User.objects.get(), organization_id=99, mode="test")

    assert selected(admin_client.get(LIST).content.decode()) == ("1", "test")


def test_page_is_shown_although_preferences_cannot_be_stored(
    admin_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    StaffPreferences.objects.create(user=User.objects.get(), organization_id=1)
    admin_client.get(LIST)

    with failing_queries("payments_staffpreferences", OperationalError("database is locked"), clause="UPDATE"):
        page = admin_client.get(LIST, {"organization": "2"})

    assert page.status_code == 200
    assert "The preferences of user" in caplog.text
    assert StaffPreferences.objects.get().organization_id == 1


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
        f"{LIST}columns", {"column": ["card", "metadata", "unknown"], "query": "mode=live&q=order"}, follow=True
    )
    again = admin_client.get(LIST).content.decode()
    admin_client.post(f"{LIST}columns", {"default": "1", "column": "card"})

    assert titles(default) == ["Created (UTC)", "Payment", "Amount", "Status", "Method", "Customer", "Description"]
    assert titles(again) == ["Created (UTC)", "Payment", "Amount", "Card", "Metadata"]
    assert "•••• 4242" in again
    assert "order: 84820" in re.sub(r"<[^>]+>", "", again)
    assert chosen.redirect_chain[0][0] == f"{LIST}?organization=1&mode=live&q=order"
    assert titles(admin_client.get(LIST).content.decode()) == titles(default)


def test_list_by_paid_day_shows_when_each_payment_was_paid(admin_client: Client) -> None:
    page = admin_client.get(LIST, {"since": "2026-01-01", "by": "paid"}).content.decode()

    assert titles(page) == ["Created (UTC)", "Payment", "Amount", "Status", "Method", "Paid", "Customer", "Description"]


@pytest.mark.parametrize(
    ("parameters", "missing"),
    [
        ({"status": ["succeeded"]}, {"Status"}),
        ({"status": ["succeeded", "failed"]}, set()),
        ({"method": "creditcard", "status": ["succeeded"]}, {"Method", "Status"}),
        ({"q": "ct_1"}, {"Customer"}),
    ],
)
def test_column_that_repeats_the_selection_disappears(
    admin_client: Client, parameters: dict[str, str | list[str]], missing: set[str]
) -> None:
    page = admin_client.get(LIST, parameters).content.decode()

    assert {"Status", "Method", "Customer", "Description"} - set(titles(page)) == missing
    assert "pt_" in page
