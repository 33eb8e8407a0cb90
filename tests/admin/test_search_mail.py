"""What support finds with texts from customers' mails.

The payments stay in the database for the whole module. Add no tests here that store payments.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from payments.admin.payments.nothing_found import COUNTED_MAX, find_id
from payments.admin.payments.search import fetch_search
from payments.admin.payments.search_box import read_search
from payments.admin.preferences import DEFAULT_COLUMNS
from payments.admin.scope import EVERYTHING, Scope
from payments.listing.filters import parse_selection
from payments.listing.query import Listing
from payments.models import Access, Mode
from tests.support.admin_site import create_staff
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.lists import list_page
from tests.support.sql import rolled_back

pytestmark = pytest.mark.django_db

LIST = "/admin/payments/payment/"
TODAY = date(2026, 11, 26)  # a Thursday
OWN = Access(1, Mode.LIVE)

TURNER, BAKER, MASON, SMITH, COOK = (
    *("pt_0353ywTZflOBJZSkSCPm1O", "pt_0353xxTZflOBJZSkSCPm1O", "pt_0353vvTZflOBJZSkSCPm1O"),
    *("pt_0353zzTZflOBJZSkSCPm1O", "pt_0353uuTZflOBJZSkSCPm1O"),
)
CARD = '{{"cardCountryCode":"NL","cardHolder":"{}","cardLabel":"{}","cardNumber":"{}"}}'

FAILED = {"failed": True, "paid_at": None}


@pytest.fixture(scope="module", autouse=True)
def payments(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Store payments of November and October of three organizations."""
    with rolled_back(django_db_blocker):
        own = OrganizationFactory.create(id=1, name="Demo Books")
        create(own, TURNER, "11-24", "42.32", "Order 84820", card=("L. Turner", "Visa", "4242 42XX XXXX 4242"))
        create(own, BAKER, "10-14", "1234.56", "Order 71", details='{"consumerName":"A. Baker"}', ideal=True, **FAILED)
        create(own, MASON, "10-20", "150.00", "Order 93001", card=("B. Mason", "Mastercard", "5555 55XX XXXX 4242"))
        amex = ("J. Smith", "American Express", "3782 82XX XXX0 577")
        create(own, SMITH, "11-25", "10.00", "", amount_currency="GBP", card=amex)
        create(own, COOK, "11-17", "20.00", "Visit 5", card=("M. Cook", "Visa", "4242 42XX XXXX 2618"), **FAILED)
        create(own, "pt_test", "11-24", "7.00", "Order 555777", mode="test")
        bikes, music = (
            OrganizationFactory.create(id=2, name="Demo Bikes"),
            OrganizationFactory.create(id=3, name="Secret"),
        )
        for number in range(2):
            create(bikes, f"pt_bikes{number}", "11-24", "7.00", "Order 555777")
        for number in range(COUNTED_MAX + 1):
            create(music, f"pt_music{number}", "11-24", "7.00", "Order 555777")
        yield


def create(organization: Any, payment_id: str, day: str, amount: str, description: str, **values: Any) -> None:
    card, numbers = values.pop("card", None), re.findall("[0-9]{5}", description)
    defaults = {
        "amount_currency": "EUR",
        "customer_id": "ct_X94GbpX" if payment_id == TURNER else "",
        "metadata": f'{{"order":"{numbers[0]}"}}' if numbers else "{}",
        "details": CARD.format(*card) if card else None,
        "created_at": datetime.fromisoformat(f"2026-{day}T12:00:00+00:00"),
    }
    PaymentFactory.create(
        id=payment_id,
        organization=organization,
        amount=Decimal(amount),
        description=description,
        **defaults | values,
    )


def found(text: str) -> list[str]:
    """Return the IDs that a text finds, in the order of the list."""
    search = read_search(text, today=TODAY, zone=ZoneInfo("UTC"))
    listing = Listing(OWN, parse_selection(search.parameters))
    if search.payment_id:
        return [search.payment_id]
    ids = list_page(fetch_search(listing, search.groups, start=None, limit=50).page).ids if search.parts else []
    payment_id = None if ids else find_id(f"pt_{text}", scope=EVERYTHING)
    return [payment_id] if payment_id else ids


FINDINGS: tuple[tuple[list[str], tuple[str, ...]], ...] = (
    ([TURNER], ("84820", "#84820", "Order 84820", "order-84820", "order:84820", "8482*")),
    ([TURNER], ("42.32", "42,32", "€42.32", "EUR 42.32", "42.32 2026-11-24")),
    ([BAKER], ("1.234,56",)),
    ([TURNER, MASON], ("x4242", "...4242", "•••• 4242", "card 4242", "visa 4242")),
    ([MASON, BAKER], ("2026-10", "Oct 2026", "october 2026", "Oct")),
    ([TURNER], ("24 nov 2026", "24.11.2026", "24 nov", "24/11", "24/11/2026", "11/24/2026")),
    ([TURNER], ("Tuesday", "42.32 euros tuesday", "42.32 eur 24 nov", "I paid 42.32 euros on Tuesday")),
    ([SMITH], ("yesterday",)),
    ([COOK], ("last week",)),
    ([TURNER], ("ct_X94GbpX",)),
    ([TURNER], (TURNER, TURNER.removeprefix("pt_"), "0353ywTZflOBJ")),
    ([COOK, BAKER], ("status:failed", "failed")),
    ([BAKER], ("method:ideal", "iDEAL")),
    ([MASON, BAKER], (">100 EUR",)),
    ([MASON], ("100-200 EUR",)),
    ([], ("100-200",)),  # the words
    ([SMITH], ("currency:gbp",)),
    ([SMITH, TURNER, COOK, MASON], ("creditcard", "card")),
    ([TURNER], ("L. Turner", "turner")),
    ([BAKER], ("Baker",)),
    ([TURNER], ("4242 November",)),
    ([MASON], ("4242 2026-10", "4242 october")),
    ([COOK], ("4242 42XX XXXX 2618", "...2618")),
    ([SMITH], ("3782 82XX XXX0 577", "0577")),
    ([], ("577",)),
    ([], ("NL",)),  # a word, if it is alone
    ([TURNER], ("42.32 NL",)),
    ([TURNER], ("https://shop.example/orders/84820",)),
)


@pytest.mark.also("citus")
def test_texts_of_mails_find_their_payments() -> None:
    expected = {text: ids for ids, texts in FINDINGS for text in texts}

    assert {text: found(text) for text in expected} == expected


def page_of(client: Client, text: str, **parameters: str) -> str:
    response = client.get(LIST, {"organization": "1", "q": text, **parameters}, follow=True)
    return re.sub(r"\s+", " ", response.content.decode())


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


def test_page_without_payments_says_which_part_fails(admin_client: Client) -> None:
    text = plain(page_of(admin_client, "42.32 2026-11-25 Order"))

    assert "No payments match “42.32 2026-11-25 Order”. Clear all" in text
    assert "Amount 42.32: 1 Created on Wednesday, 25 November 2026: 1 “order”: 3" in text
    assert "As text: 0" in text


def test_page_without_payments_leads_to_those_of_other_lists(admin_client: Client) -> None:
    html = page_of(admin_client, "555777")

    assert "Elsewhere: 1 in Demo Books, test mode · 2 in Demo Bikes · 10 or more in Secret" in plain(html)
    [link] = re.findall(r'<a href="\?([^"]+)">2 in', html)
    assert "pt_bikes1" in admin_client.get(f"{LIST}?{link.replace('&amp;', '&')}").content.decode()


def test_page_without_payments_names_no_organization_outside_the_scope(client: Client) -> None:
    client.force_login(create_staff("viewer", "view_payment", organizations=[1, 2]))

    html = page_of(client, "555777")

    assert "2 in Demo Bikes" in plain(html)
    assert "Secret" not in html
    assert "Not all organizations were searched" not in html


def test_filters_are_named_if_they_exclude_all_payments(admin_client: Client) -> None:
    assert "Without the filters: 1" in plain(page_of(admin_client, "84820", status="failed"))
    assert "Without the filters" not in plain(page_of(admin_client, "nothing"))


@pytest.mark.parametrize(("text", "target"), [("order 930", "order 930*"), ("#8482", "#8482*")])
def test_beginning_of_an_order_number_leads_to_longer_numbers(admin_client: Client, text: str, target: str) -> None:
    response = admin_client.get(LIST, {"organization": "1", "q": text})

    assert parse_qs(urlsplit(response["Location"]).query)["q"] == [target]
    assert "Words that begin with" in admin_client.get(response["Location"]).content.decode()


@pytest.mark.extended
@pytest.mark.parametrize("text", ["84", "848207", "Ord", "order 84", '"8482"', "8482 nothing"])
def test_other_texts_lead_to_no_longer_words(admin_client: Client, text: str) -> None:
    response = admin_client.get(LIST, {"organization": "1", "q": text})

    assert (response.status_code, "No payments match" in response.content.decode()) == (200, True)


@pytest.mark.parametrize("text", [TURNER[3:], "0353ywTZflOB"])
def test_part_of_an_id_from_its_beginning_opens_the_payment(admin_client: Client, text: str) -> None:
    response = admin_client.get(LIST, {"organization": "1", "q": text})

    assert response["Location"] == f"{LIST}pt_5F{TURNER[3:]}/change/"


@pytest.mark.extended
@pytest.mark.parametrize("text", ["0353ywTZ", "0353", "pt_0353", "pt_music1", "music1", "pt_music", "musicmusicmusic"])
def test_id_of_no_payment_of_the_scope_opens_nothing(client: Client, text: str) -> None:
    client.force_login(create_staff("viewer", "view_payment", organizations=[1, 2]))

    assert client.get(LIST, {"organization": "1", "q": text}).status_code == 200


def test_beginning_of_several_ids_is_no_id() -> None:
    assert find_id("pt_0353ywTZflOB", scope=Scope(frozenset([1]))) == TURNER
    assert find_id("pt_0353ywTZflOB", scope=Scope(frozenset([2]))) is None
    assert find_id("pt_0353", scope=EVERYTHING) is None


@pytest.mark.extended
@pytest.mark.parametrize(
    ("text", "marks", "title"),
    [
        ("84820", ["84820", "84820"], "Metadata"),
        ("42.32", ["42.32"], ""),
        ("card:2618", ["2618"], ""),
        ("3782 82XX XXX0 577", ["0577"], ""),
        ("visa 2618", ["2618"], ""),
        ("Turner", ["Turner"], ""),
        ("9300*", ["93001", "93001"], "Metadata"),
        ("order:93001", ["93001", "93001"], "Metadata"),
        ("2026-11-17", [], ""),
    ],
)
def test_match_is_marked_in_its_column(admin_client: Client, text: str, marks: list[str], title: str) -> None:
    html = page_of(admin_client, text)

    assert re.findall("<mark>([^<]+)</mark>", html) == marks
    usual = {"ID", *(column.label for column in DEFAULT_COLUMNS)}
    titles = set(re.findall(r'<th scope="col">([^<]+)</th>', html)) - usual
    assert titles == ({title} if title else set())


def test_match_is_marked(admin_client: Client) -> None:
    html = page_of(admin_client, "turner 42.32")

    assert re.findall("<mark>([^<]+)</mark>", html) == ["42.32", "Turner"]
