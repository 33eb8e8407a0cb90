"""GET /v2/payments."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from payments.models import Organization
from tests.support.api import Api, payment_ids
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.sql import key_and_content, tables_read

pytestmark = pytest.mark.also("citus")

TIME = datetime(2018, 3, 20, 13, 28, 37, tzinfo=UTC)


@pytest.fixture
def four_payments(organization: Organization) -> None:
    """D is the newest; C and B share their time; A is the oldest."""
    PaymentFactory.create(id="pt_D", organization=organization, created_at=TIME + timedelta(milliseconds=1))
    PaymentFactory.create(
        id="pt_C",
        organization=organization,
        open=True,
        amount=1000,
        amount_currency="JPY",
        method="",
        description="",
        created_at=TIME,
    )
    PaymentFactory.create(
        id="pt_B",
        organization=organization,
        recurring=True,
        amount=10,
        amount_currency="EUR",
        amount_net=Decimal("9.55"),
        amount_net_currency="EUR",
        amount_remaining=0,
        amount_remaining_currency="EUR",
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
    )
    PaymentFactory.create(id="pt_A", organization=organization, created_at=TIME - timedelta(days=1))


def test_page_equals_the_expected_document(api: Api, four_payments: None, documents: Path) -> None:
    response = api.get(limit=2, from_="pt_C")

    expected = json.loads((documents / "page.json").read_text())
    assert response.status_code == 200
    assert response["Content-Type"] == "application/hal+json"
    assert response.content.decode() == json.dumps(expected, ensure_ascii=False, separators=(",", ":"))


def test_empty_list_is_a_page_without_previous_and_next(api: Api) -> None:
    response = api.get()

    assert response.json() == {
        "count": 0,
        "_embedded": {"payments": []},
        "_links": {
            "self": {"href": "http://testserver/v2/payments?limit=20", "type": "application/hal+json"},
            "documentation": {"href": "http://testserver/docs/reference/#list-payments", "type": "text/html"},
        },
    }


def test_self_remains_the_same_page_when_newer_payments_arrive(
    api: Api, four_payments: None, organization: Organization
) -> None:
    before = api.get(limit=2).json()

    PaymentFactory.create(organization=organization, created_at=NOON)
    after = api.follow(before["_links"]["self"]["href"]).json()

    assert payment_ids(after) == payment_ids(before) == ["pt_D", "pt_C"]
    assert after["_links"]["self"] == before["_links"]["self"]
    assert "previous" not in before["_links"]
    assert "previous" in after["_links"]


@pytest.mark.parametrize("limit", [1, 2, 19, 20, 21, 249, 250])
@pytest.mark.parametrize("count", [0, 1, 20, 21, 40])
def test_next_leads_to_every_payment_once_and_previous_leads_back(
    api: Api, organization: Organization, limit: int, count: int
) -> None:
    assert_complete_walk(api, organization, limit=limit, count=count)


@pytest.mark.parametrize(
    "limit", [249, 250, *(pytest.param(limit, marks=pytest.mark.extended) for limit in (1, 2, 19, 20, 21))]
)
def test_walk_returns_more_payments_than_the_largest_page(api: Api, organization: Organization, limit: int) -> None:
    assert_complete_walk(api, organization, limit=limit, count=251)


def assert_complete_walk(api: Api, organization: Organization, *, limit: int, count: int) -> None:
    payments = PaymentFactory.create_batch(count, created_at=NOON, organization=organization)

    forward = api.walk("next", api.get(limit=limit).json())
    backward = api.walk("previous", forward[-1])

    assert payment_ids(*forward) == sorted((payment.id for payment in payments), reverse=True)
    assert [page["_embedded"] for page in reversed(backward)] == [page["_embedded"] for page in forward]
    assert all(page["count"] == len(page["_embedded"]["payments"]) <= limit for page in forward)


def test_page_has_twenty_payments_by_default(api: Api, organization: Organization) -> None:
    PaymentFactory.create_batch(21, organization=organization)

    assert api.get().json()["count"] == 20


def links_of(page: Any) -> list[dict[str, str]]:
    """Return the links of a page and of its first record."""
    return [*page["_links"].values(), *page["_embedded"]["payments"][0]["_links"].values()]


def test_link_has_only_an_href_and_a_type(api: Api, four_payments: None) -> None:
    page = api.get(limit=1, from_="pt_C").json()

    links = links_of(page)
    assert len(links) == 7
    assert all(set(link) == {"href", "type"} for link in links)


def test_key_sees_only_its_organization_and_mode(client: Client, api: Api, organization: Organization) -> None:
    other = OrganizationFactory.create(id=2)
    PaymentFactory.create(id="pt_own", organization=organization)
    PaymentFactory.create(id="pt_test", organization=organization, test=True)
    PaymentFactory.create(id="pt_other", organization=other)
    test_key = ApiKeyFactory.create(organization=organization, test=True)
    other_key = ApiKeyFactory.create(organization=other)

    assert payment_ids(api.get().json()) == ["pt_own"]
    assert payment_ids(Api(client, test_key).get().json()) == ["pt_test"]
    assert payment_ids(Api(client, other_key).get().json()) == ["pt_other"]


@pytest.mark.parametrize("limit", [1, 20, 250])
@pytest.mark.parametrize("start", [{}, {"from_": "pt_C"}])
def test_page_needs_one_statement_with_its_key(
    api: Api, four_payments: None, limit: int, start: dict[str, str]
) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get(limit=limit, **start)

    assert tables_read(queries) == key_and_content()


@pytest.mark.parametrize(
    ("filters", "start", "limits"),
    [
        ({}, {}, ["3"]),
        ({}, {"from_": "pt_C"}, ["1", "1", "3"]),
        ({"method": "creditcard"}, {}, ["21"]),
        ({"method": "creditcard"}, {"from_": "pt_C"}, ["1", "2", "20", "21"]),
    ],
)
def test_page_reads_one_payment_more_than_its_limit(
    api: Api, four_payments: None, filters: dict[str, str], start: dict[str, str], limits: list[str]
) -> None:
    """A page with filters reads at least 21.

    The link to the previous page costs two reads of one row: `limit` positions back, or the first of all. With filters,
    it costs one read of at least 20 rows.
    """
    with CaptureQueriesContext(connection) as queries:
        api.get(limit=2, **filters, **start)

    assert sorted(re.findall(r"LIMIT (\d+)", queries[-1]["sql"]), key=int) == limits


def test_page_counts_no_rows(api: Api, four_payments: None) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get(from_="pt_C")

    assert not any("COUNT(" in query["sql"] for query in queries)


def test_links_begin_with_the_public_base_url(api: Api, four_payments: None, settings: Settings) -> None:
    settings.PAYMENTS_PUBLIC_BASE_URL = "https://pay.example/shop"

    page = api.get(limit=1).json()

    assert all(link["href"].startswith("https://pay.example/shop/") for link in links_of(page))
    assert page["_links"]["next"]["href"] == "https://pay.example/shop/v2/payments?limit=1&from=pt_C"


def test_forwarded_host_is_ignored_without_a_trusted_proxy(api: Api) -> None:
    response = api.send("GET", "/v2/payments", X_Forwarded_Host="elsewhere.example", X_Forwarded_Proto="https")

    assert response.json()["_links"]["self"]["href"] == "http://testserver/v2/payments?limit=20"


def test_forwarded_host_of_a_trusted_proxy_is_used(api: Api, settings: Settings) -> None:
    settings.USE_X_FORWARDED_HOST = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.ALLOWED_HOSTS = ["pay.example"]

    response = api.send("GET", "/v2/payments", X_Forwarded_Host="pay.example", X_Forwarded_Proto="https")

    assert response.json()["_links"]["self"]["href"] == "https://pay.example/v2/payments?limit=20"


def test_headers_of_a_trusted_proxy_are_used_one_by_one_under_any_name(api: Api, settings: Settings) -> None:
    """The name of the header for the scheme is the project's choice."""
    sent = {"X_Forwarded_Host": "pay.example", "X_Forwarded_Port": "8443", "X_Scheme": "https"}
    bases = []
    for name, value in (
        ("SECURE_PROXY_SSL_HEADER", ("HTTP_X_SCHEME", "https")),
        ("USE_X_FORWARDED_PORT", True),
        ("USE_X_FORWARDED_HOST", True),
    ):
        setattr(settings, name, value)
        settings.ALLOWED_HOSTS = ["testserver", "pay.example"]
        links = api.send("GET", "/v2/payments", **sent).json()["_links"]
        bases.append(links["self"]["href"].removesuffix("/v2/payments?limit=20"))

    assert bases == ["https://testserver:80", "https://testserver:8443", "https://pay.example"]
    plain = api.send("GET", "/v2/payments").json()["_links"]["self"]["href"]
    assert plain.startswith("http://testserver/")


def test_headers_that_clients_add_are_ignored(api: Api, four_payments: None) -> None:
    response = api.send(
        "GET", "/v2/payments", Content_Type="application/xml", Idempotency_Key="1", If_Match='"x"', Range="bytes=0-1"
    )

    assert response.status_code == 200


def test_head_is_get_without_a_body(api: Api, four_payments: None) -> None:
    get, head = (api.send(method, "/v2/payments") for method in ("GET", "HEAD"))

    assert head.content == b""
    assert dict(head.items()) == dict(get.items())
