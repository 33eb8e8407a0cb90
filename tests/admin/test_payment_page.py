"""The head of a payment's page says what happened, and its links lead to pages that the user may see."""

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from payments.admin.payments.display import PaymentDisplay
from payments.models import Organization, Payment, StatusChange
from payments.models.choices import method_label
from payments.rows import values_of
from payments.templatetags.texts import SHORT_CHARACTERS_MAX, shortened
from tests.support.admin_site import create_staff
from tests.support.factories import OrganizationFactory, PaymentFactory

PAGE = "/admin/payments/payment/pt_5F1/change/"
AMERICAN_EXPRESS = {"cardHolder": "L. Turner", "cardLabel": "American Express", "cardNumber": "3782 82XX XXX0 577"}


def display(details: dict[str, Any] | None = None, **values: Any) -> PaymentDisplay:
    """Return a payment that is not stored."""
    document = None if details is None else json.dumps(details)
    payment = PaymentFactory.build(organization=OrganizationFactory.build(id=1), details=document, **values)
    return PaymentDisplay(values_of(payment))


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def head(client: Client) -> str:
    match = re.search(r'<header class="money">(.*?)</header>', client.get(PAGE).content.decode(), re.DOTALL)
    assert match is not None
    return text_of(match[1])


def create_payment(organization: Organization, details: dict[str, Any] | None = None, **values: Any) -> Payment:
    document = None if details is None else json.dumps(details)
    return PaymentFactory.create(id="pt_1", organization=organization, details=document, **values)


def test_head_has_order_card_customer_and_organization(admin_client: Client, organization: Organization) -> None:
    create_payment(
        organization, AMERICAN_EXPRESS, metadata='{"orderId":"84820"}', description="Tea", customer_id="ct_7"
    )

    assert head(admin_client).startswith(
        "10.00 EUR Paid Tea Order 84820 American Express •• 0577 L. Turner ct_7 Books pt_1"
    )


@pytest.mark.parametrize(
    ("values", "refunded"),
    [
        ({}, 0),
        ({"amount_remaining": Decimal("10.00"), "amount_remaining_currency": "EUR"}, 0),
        ({"amount_remaining": Decimal("4.00"), "amount_remaining_currency": "EUR"}, 600),
        ({"amount_remaining": Decimal("0.00"), "amount_remaining_currency": "EUR"}, 1000),
        ({"amount_remaining": Decimal("4.00"), "amount_remaining_currency": "USD"}, 0),
        ({"status": "open", "amount_remaining": Decimal("4.00"), "amount_remaining_currency": "EUR"}, 0),
    ],
)
def test_refunded_amount_is_what_does_not_remain(values: dict[str, Any], refunded: int) -> None:
    assert display(**values).refunded == refunded


def test_refunded_amount_is_shown_beside_the_status(admin_client: Client, organization: Organization) -> None:
    create_payment(organization, description="Tea", test=True, amount_remaining="4.00", amount_remaining_currency="EUR")

    assert head(admin_client).startswith("10.00 EUR Paid 6.00 refunded Test Tea")


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        ({"failureReason": "insufficient_funds"}, "insufficient funds"),
        ({"failureMessage": "Your card was declined."}, "Your card was declined."),
        ({"statusReason": {"code": "expired_card", "message": "The card has expired"}}, "The card has expired"),
        ({"statusReason": {"code": "expired_card"}}, "expired card"),
        ({"failureReason": 7}, ""),
        ({"failureReason": {}}, ""),
        (None, ""),
    ],
)
def test_reason_of_a_failure_is_in_words(details: dict[str, Any] | None, reason: str) -> None:
    assert display(details, failed=True).failure_reason == reason


@pytest.mark.parametrize(
    ("details", "shown"),
    [
        ({"failureReason": "insufficient_funds"}, "Failed: insufficient funds"),
        ({}, "Failed. The provider gave no reason."),
    ],
)
def test_failed_payment_says_why(
    admin_client: Client, organization: Organization, details: dict[str, Any], shown: str
) -> None:
    create_payment(organization, details, failed=True)

    assert f"EUR Failed {shown} " in head(admin_client)


@pytest.mark.parametrize(
    ("metadata", "description", "order"),
    [
        ({"order": "84820"}, "Tea", "84820"),
        ({"Order-Number": "84820"}, "Tea", "84820"),
        ({"order": "84820"}, "Order 84820", ""),
        ({"orderId": "", "orders": "84820"}, "Tea", ""),
    ],
)
def test_order_number_is_that_of_the_metadata(metadata: dict[str, str], description: str, order: str) -> None:
    assert display(metadata=json.dumps(metadata), description=description).order == order


@pytest.mark.parametrize("has_permission", [True, False])
def test_links_need_the_permission_of_their_target(organization: Organization, has_permission: bool) -> None:
    payment = create_payment(organization, customer_id="ct_7")
    StatusChange.objects.create(
        organization=organization, payment_id="pt_1", change_id=payment.change_id, status="succeeded", import_id=12
    )
    more = ("view_organization", "anonymize_payment", "view_importrun") if has_permission else ()
    client = Client()
    client.force_login(create_staff("agent", "view_payment", *more, organizations=[organization.id]))

    page = client.get(PAGE).content.decode()
    links = set(re.findall(r'<a href="(/admin/payments/[^"]+)"', page))

    assert {client.get(link.replace("&amp;", "&")).status_code for link in links} == {200}
    assert ("/admin/payments/organization/1/change/" in links) == has_permission
    assert "Books" in head(client)
    assert "Import 12" in text_of(page)


def test_link_to_copy_names_organization_and_mode(admin_client: Client, organization: Organization) -> None:
    create_payment(organization)

    page = admin_client.get(PAGE).content.decode()

    assert f'data-copy="http://testserver{PAGE}?organization=1&amp;mode=live"' in page


@pytest.mark.parametrize(
    ("method", "label"),
    [
        ("creditcard", "Credit card"),
        ("applePay", "Apple Pay"),
        ("sepa_debit", "SEPA direct debit"),
        ("ideal", "iDEAL"),
        ("Crypto-X", "Crypto-X"),
    ],
)
def test_method_is_shown_in_words(method: str, label: str) -> None:
    assert method_label(method) == label


@pytest.mark.parametrize(("length", "is_cut"), [(SHORT_CHARACTERS_MAX, False), (SHORT_CHARACTERS_MAX + 1, True)])
def test_long_text_is_cut_and_can_be_opened(length: int, is_cut: bool) -> None:
    text = "x" * length

    html = shortened(text)

    assert html.endswith(f"<bdi>{text}</bdi></details>" if is_cut else f"<bdi>{text}</bdi>")
    assert ("Show all" in html) == is_cut
