"""The page that removes the personal data of a customer's payments."""

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from pytest_django import Settings

from payments.anonymization import BLANK
from payments.models import CHANGE_PAYMENTS_MAX, Organization, Payment
from payments.runtime.process import process
from tests.support.admin_site import create_staff
from tests.support.factories import OrganizationFactory, PaymentFactory

pytestmark = pytest.mark.also("citus")

PAGE = "/admin/payments/payment/anonymize/"
CUSTOMER = {"organization": "1", "customer": "ct_7"}
PERMISSIONS = ("view_payment", "anonymize_payment")
CONFIRMED = {**CUSTOMER, "confirmation": "ct_7"}


@pytest.fixture(autouse=True)
def payments(organization: Organization) -> None:
    """Three payments of a customer, and others: of another customer, and with the same ID in another organization."""
    PaymentFactory.create_batch(2, organization=organization, customer_id="ct_7")
    PaymentFactory.create(organization=organization, customer_id="ct_7", test=True)
    PaymentFactory.create(organization=organization, customer_id="ct_8")
    PaymentFactory.create(organization=OrganizationFactory.create(id=2), customer_id="ct_7")


def text_of(response: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", response.content.decode()))


def anonymized() -> int:
    return Payment.objects.filter(**BLANK).exclude(anonymized_at=None).count()


def test_page_asks_before_it_removes_anything(admin_client: Client) -> None:
    page = admin_client.get(PAGE, CUSTOMER)

    assert "Payments of ct_7 in Books: 2 live, 1 test" in text_of(page)
    assert "You cannot undo this." in text_of(page)
    assert anonymized() == 0


def test_form_preselects_the_organization_of_the_header(admin_client: Client) -> None:
    OrganizationFactory.create(id=3, name="A Bakery")
    first = admin_client.get(PAGE).content.decode()
    admin_client.post("/admin/payments/payment/switch/", {"organization": "3", "mode": "live"})
    switched = admin_client.get(PAGE).content.decode()

    assert '<option value="1" selected>Books' in first
    assert '<option value="3" selected>A Bakery' in switched


@pytest.mark.parametrize("confirmation", ["", "CT_7"])
def test_without_the_customer_id_typed_once_more_nothing_is_removed(admin_client: Client, confirmation: str) -> None:
    page = admin_client.post(PAGE, CUSTOMER | {"confirmation": confirmation})

    assert "2 live, 1 test" in text_of(page)
    assert (anonymized(), LogEntry.objects.count()) == (0, 0)


def test_confirmation_removes_the_data_in_both_modes_of_one_organization(
    admin_client: Client, admin_user: User
) -> None:
    page = admin_client.post(PAGE, CONFIRMED, follow=True)

    assert "The personal data of 3 payments was removed." in text_of(page)
    assert anonymized() == 3
    assert sorted(Payment.objects.exclude(customer_id="").values_list("organization_id", "customer_id")) == [
        (1, "ct_8"),
        (2, "ct_7"),
    ]
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id) == (admin_user, "1")
    assert entry.change_message == "The personal data of 3 payments was removed. They were of one customer."


def test_customer_without_payments_cannot_be_confirmed(admin_client: Client) -> None:
    page = admin_client.get(PAGE, CUSTOMER | {"customer": "ct_9"})

    assert "No payments of ct_9 in Books." in text_of(page)
    assert 'name="confirmation"' not in page.content.decode()


@pytest.mark.parametrize("customer", ["7", "ct_7\0", ""])
def test_invalid_customer_id_is_refused(admin_client: Client, customer: str) -> None:
    page = admin_client.get(PAGE, CUSTOMER | {"customer": customer})

    assert page.status_code == 200
    assert 'class="errorlist"' in page.content.decode()


def test_foreign_organization_is_answered_as_an_unknown_one(db: None) -> None:
    client = Client()
    client.force_login(create_staff("agent", *PERMISSIONS, organizations=[1]))

    def answers(number: str) -> list[str]:
        pages = [
            client.get(PAGE, CUSTOMER | {"organization": number}),
            client.post(PAGE, CONFIRMED | {"organization": number}),
        ]
        return [re.sub(r'token" value="[^"]+"', "", page.content.decode()) for page in pages]

    assert answers("2") == answers("3")
    assert anonymized() == 0
    assert "2 live, 1 test" in text_of(client.get(PAGE, CUSTOMER))


def test_payment_of_a_customer_links_to_the_page(admin_client: Client) -> None:
    payment = Payment.objects.filter(customer_id="ct_7", organization_id=1)[0]

    page = admin_client.get(f"/admin/payments/payment/{quote(payment.id)}/change/").content.decode()

    assert f'<a href="{PAGE}?organization=1&amp;customer=ct_7">' in page


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_page_and_its_link_need_the_permissions(db: None, permission: str) -> None:
    client = Client()
    client.force_login(create_staff("agent", permission, organizations=[1]))
    payment = Payment.objects.filter(customer_id="ct_7", organization_id=1)[0]

    assert [client.get(PAGE).status_code, client.post(PAGE, CONFIRMED).status_code] == [403, 403]
    assert PAGE not in client.get(f"/admin/payments/payment/{quote(payment.id)}/change/").content.decode()
    assert anonymized() == 0


@pytest.fixture
def short_time(settings: Settings) -> Iterator[None]:
    """Less time than a request needs to begin a second batch."""
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 60
    with process.deadline.shortened(20):
        yield


@pytest.mark.extended
def test_customer_with_many_payments_is_continued(admin_client: Client, short_time: None) -> None:
    more = [PaymentFactory.build(organization_id=1, customer_id="ct_7") for _ in range(CHANGE_PAYMENTS_MAX)]
    Payment.objects.bulk_create(more)

    page = admin_client.post(PAGE, CONFIRMED, follow=True)

    assert f"The personal data of {CHANGE_PAYMENTS_MAX} payments was removed. Some are left" in text_of(page)
    assert "Payments of ct_7 in Books: 2 live, 1 test" in text_of(page)
    assert LogEntry.objects.count() == 1


@pytest.mark.extended
@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_payments_that_an_import_writes_are_left_for_later(admin_client: Client) -> None:
    info = connection.connection.info
    with psycopg.connect(info.dsn, password=info.password) as importing:
        importing.execute("UPDATE payments_payment SET description = 'changed' WHERE customer_id = 'ct_7'")
        page = admin_client.post(PAGE, CONFIRMED, follow=True)

    assert "The personal data of 0 payments was removed. Some are left" in text_of(page)
    assert anonymized() == 0
