"""The admin: payments to read, nothing to lose."""

import pytest
from django.test import Client

from payments.models import ApiKey, Payment
from tests.api import key_text
from tests.factories import ApiKeyFactory, OrganizationFactory, PaymentFactory


@pytest.fixture
def payment(db: None) -> Payment:
    return PaymentFactory.create(id="pt_1", description="Order 7")


@pytest.mark.parametrize("model", ["payment", "organization", "apikey"])
def test_every_list_shows_what_there_is(admin_client: Client, payment: Payment, model: str) -> None:
    ApiKeyFactory.create(organization=payment.organization)

    response = admin_client.get(f"/admin/payments/{model}/")

    assert response.status_code == 200
    assert payment.organization.name in response.content.decode()


def test_a_payments_page_shows_it_and_changes_nothing(admin_client: Client, payment: Payment) -> None:
    path = "/admin/payments/payment/pt_5F1/change/"

    page = admin_client.get(path)
    attempt = admin_client.post(path, {"description": "changed"})

    payment.refresh_from_db()
    assert b"Order 7" in page.content
    assert b'name="description"' not in page.content
    assert attempt.status_code == 403
    assert payment.description == "Order 7"


@pytest.mark.parametrize("path", ["payment/pt_5F1/delete/", "payment/add/", "apikey/add/"])
def test_payments_and_keys_are_neither_made_nor_deleted_there(
    admin_client: Client, payment: Payment, path: str
) -> None:
    assert admin_client.post(f"/admin/payments/{path}", {"post": "yes"}).status_code == 403


def test_payments_are_not_deleted_by_an_action_either(admin_client: Client, payment: Payment) -> None:
    admin_client.post(
        "/admin/payments/payment/", {"action": "delete_selected", "_selected_action": "pt_1", "post": "yes"}
    )

    assert Payment.objects.exists()


def test_a_key_is_not_shown_nor_its_digest(admin_client: Client, db: None) -> None:
    key: ApiKey = ApiKeyFactory.create()

    page = admin_client.get(f"/admin/payments/apikey/{key.pk}/change/").content.decode()

    assert key.digest not in page
    assert key_text(key) not in page


def test_an_organization_can_be_renamed_but_not_renumbered(admin_client: Client, db: None) -> None:
    organization = OrganizationFactory.create(id=7)

    admin_client.post("/admin/payments/organization/7/change/", {"id": "8", "name": "Renamed"})

    organization.refresh_from_db()
    assert (organization.id, organization.name) == (7, "Renamed")


def test_a_stranger_is_led_to_the_login(client: Client, payment: Payment) -> None:
    response = client.get("/admin/payments/payment/pt_5F1/change/")

    assert response.status_code == 302
    assert response["Location"].startswith("/admin/login/")
