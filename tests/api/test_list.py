"""GET /v2/payments."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from moneyed import Money
from pytest_django import Settings

from payments.models import Organization
from tests.support.api import Api, ids
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory

TIME = datetime(2018, 3, 20, 13, 28, 37, tzinfo=UTC)


@pytest.fixture
def four_payments(organization: Organization) -> None:
    """D is the newest; C and B share their moment; A is the oldest."""
    place = {"organization": organization}
    PaymentFactory.create(id="pt_D", created_at=TIME + timedelta(milliseconds=1), **place)
    PaymentFactory.create(
        id="pt_C", open=True, amount=Money(1000, "JPY"), method="", description="", created_at=TIME, **place
    )
    PaymentFactory.create(
        id="pt_B",
        recurring=True,
        amount=Money(10, "EUR"),
        amount_net=Money("9.55", "EUR"),
        amount_remaining=Money(0, "EUR"),
        description='Café "№ 7"',
        redirect_url="https://shop.example/orders/7",
        webhook_url="https://shop.example/webhook",
        metadata='{"zeta":"1","alpha":"2"}',
        details='{"cardNumber":"4242 42XX XXXX 4242","cardHolder":"A. Baker",'
        '"cardCountryCode":"NL","cardLabel":"Visa"}',
        created_at=TIME,
        expires_at=TIME + timedelta(minutes=15),
        paid_at=TIME + timedelta(seconds=23, microseconds=123_999),
        customer_id="ct_7",
        **place,
    )
    PaymentFactory.create(id="pt_A", created_at=TIME - timedelta(days=1), **place)


def test_a_page_is_the_whole_expected_document(api: Api, four_payments: None, documents: Path) -> None:
    response = api.get(limit=2, from_="pt_C")

    expected = json.loads((documents / "page.json").read_text())
    assert response.status_code == 200
    assert response["Content-Type"] == "application/hal+json"
    assert response.content.decode() == json.dumps(expected, ensure_ascii=False, separators=(",", ":"))


def test_an_empty_list_is_a_page_without_neighbours(api: Api) -> None:
    response = api.get()

    assert response.json() == {
        "count": 0,
        "_embedded": {"payments": []},
        "_links": {
            "self": {"href": "http://testserver/v2/payments?limit=20", "type": "application/hal+json"},
            "documentation": {"href": "http://testserver/docs/", "type": "text/html"},
        },
    }


def test_self_stays_the_same_page_when_newer_payments_arrive(
    api: Api, four_payments: None, organization: Organization
) -> None:
    newest = api.get(limit=2).json()

    PaymentFactory.create(organization=organization, created_at=NOON)
    again = api.follow(newest["_links"]["self"]["href"]).json()

    assert ids(again) == ids(newest) == ["pt_D", "pt_C"]
    assert again["_links"]["self"] == newest["_links"]["self"]
    assert "previous" not in newest["_links"]
    assert "previous" in again["_links"]


@pytest.mark.parametrize("limit", [1, 2, 19, 20, 21, 249, 250])
@pytest.mark.parametrize("count", [0, 1, 20, 21, 40, 251])
def test_following_next_lists_every_payment_once_and_previous_leads_back(
    api: Api, organization: Organization, limit: int, count: int
) -> None:
    tied = {"created_at": NOON, "organization": organization}
    expected = [payment.id for payment in PaymentFactory.create_batch(count, **tied)]

    there = api.walk("next", api.get(limit=limit).json())
    back = api.walk("previous", there[-1])

    assert ids(*there) == sorted(expected, reverse=True)
    assert [page["_embedded"] for page in reversed(back)] == [page["_embedded"] for page in there]
    assert all(page["count"] == len(page["_embedded"]["payments"]) <= limit for page in there)


def test_a_page_holds_twenty_payments_by_default(api: Api, organization: Organization) -> None:
    PaymentFactory.create_batch(21, organization=organization)

    assert api.get().json()["count"] == 20


def test_every_link_has_an_href_and_a_type_alone(api: Api, four_payments: None) -> None:
    page = api.get(limit=1, from_="pt_C").json()

    links = [*page["_links"].values(), *page["_embedded"]["payments"][0]["_links"].values()]
    assert len(links) == 7
    assert all(set(link) == {"href", "type"} for link in links)


def test_a_key_sees_its_own_organization_and_mode_alone(client: Client, api: Api, organization: Organization) -> None:
    other = OrganizationFactory.create(id=2)
    PaymentFactory.create(id="pt_mine", organization=organization)
    PaymentFactory.create(id="pt_test", organization=organization, test=True)
    PaymentFactory.create(id="pt_other", organization=other)
    test_key = ApiKeyFactory.create(organization=organization, test=True)
    other_key = ApiKeyFactory.create(organization=other)

    assert ids(api.get().json()) == ["pt_mine"]
    assert ids(Api(client, test_key).get().json()) == ["pt_test"]
    assert ids(Api(client, other_key).get().json()) == ["pt_other"]


@pytest.mark.parametrize("limit", [1, 20, 250])
@pytest.mark.parametrize("from_", [{}, {"from_": "pt_C"}])
def test_a_page_costs_two_queries(api: Api, four_payments: None, limit: int, from_: dict[str, str]) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get(limit=limit, **from_)

    statements = [query["sql"] for query in queries]
    assert [statement.split('FROM "')[1].split('"')[0] for statement in statements] == [
        "payments_apikey",
        "payments_payment",
    ]


@pytest.mark.parametrize("asked", [{}, {"method": "creditcard"}])
@pytest.mark.parametrize(("from_", "limits"), [({}, ["3"]), ({"from_": "pt_C"}, ["1", "1", "3"])])
def test_a_page_reads_one_payment_more_than_its_limit(
    api: Api, four_payments: None, asked: dict[str, str], from_: dict[str, str], limits: list[str]
) -> None:
    """The page before it begins at the payment `limit` places back, or else at the first of all: one each."""
    with CaptureQueriesContext(connection) as queries:
        api.get(limit=2, **asked, **from_)

    assert sorted(re.findall(r"LIMIT (\d+)", queries[-1]["sql"])) == limits


def test_a_page_never_counts(api: Api, four_payments: None) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get(from_="pt_C")

    assert not any("COUNT(" in query["sql"] for query in queries)


def test_links_begin_with_the_public_base_url_where_it_is_set(
    api: Api, four_payments: None, settings: Settings
) -> None:
    settings.PUBLIC_BASE_URL = "https://pay.example/shop"

    page = api.get(limit=1).json()

    links = [*page["_links"].values(), *page["_embedded"]["payments"][0]["_links"].values()]
    assert all(link["href"].startswith("https://pay.example/shop/") for link in links)
    assert page["_links"]["next"]["href"] == "https://pay.example/shop/v2/payments?limit=1&from=pt_C"


def test_a_forwarded_host_does_not_count_unless_a_proxy_is_trusted(api: Api) -> None:
    response = api.send("GET", "/v2/payments", X_Forwarded_Host="elsewhere.example", X_Forwarded_Proto="https")

    assert response.json()["_links"]["self"]["href"] == "http://testserver/v2/payments?limit=20"


def test_a_forwarded_host_counts_where_a_proxy_is_trusted(api: Api, settings: Settings) -> None:
    settings.USE_X_FORWARDED_HOST = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.ALLOWED_HOSTS = ["pay.example"]

    response = api.send("GET", "/v2/payments", X_Forwarded_Host="pay.example", X_Forwarded_Proto="https")

    assert response.json()["_links"]["self"]["href"] == "https://pay.example/v2/payments?limit=20"


def test_headers_of_other_clients_making_are_ignored(api: Api, four_payments: None) -> None:
    response = api.send(
        "GET", "/v2/payments", Content_Type="application/xml", Idempotency_Key="1", If_Match='"x"', Range="bytes=0-1"
    )

    assert response.status_code == 200


def test_head_is_get_without_a_body(api: Api, four_payments: None) -> None:
    get, head = (api.send(method, "/v2/payments") for method in ("GET", "HEAD"))

    assert head.content == b""
    assert dict(head.items()) == dict(get.items())
