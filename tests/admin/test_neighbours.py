"""The previous and the next payment of the list, on a payment's page."""

import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments.models import Organization
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.list_errors import timeout_error

pytestmark = pytest.mark.also("citus")

LIST = "/admin/payments/payment/"
RELATIONS = ("prev", "next")


@pytest.fixture
def organization(db: None) -> Organization:
    """Return an organization with the payments pt_0 to pt_5, each a minute newer. Those with an even number failed."""
    organization: Organization = OrganizationFactory.create(id=1)
    for number in range(6):
        PaymentFactory.create(
            id=f"pt_{number}",
            organization=organization,
            status="succeeded" if number % 2 else "failed",
            description=f"Order {'odd' if number % 2 else 'even'}",
            created_at=NOON + timedelta(minutes=number),
        )
    return organization


def page_of(payment_id: str, query: str = "") -> str:
    return f"{LIST}{payment_id.replace('_', '_5F')}/change/?{query}"


def links(html: str) -> dict[str, str]:
    """Return the targets of the links to the neighbours and to the list, by their relation or their text."""
    nav = re.search(r'<nav class="pager" aria-label="Previous and next payment">(.*?)</nav>', html, re.DOTALL)
    assert nav is not None
    found = re.findall(r'<a href="([^"]+)"(?: rel="(\w+)")?>([^<]+)</a>', nav[1])
    return {relation or text: unescape(href) for href, relation, text in found}


def neighbours(client: Client, path: str) -> list[str | None]:
    """Return the IDs of the previous and the next payment."""
    hrefs = links(client.get(path).content.decode())
    paths = (urlsplit(hrefs[relation]).path if relation in hrefs else None for relation in RELATIONS)
    return [path and path.split("/")[-3].replace("_5F", "_") for path in paths]


@pytest.mark.parametrize(
    ("payment_id", "query", "expected"),
    [
        ("pt_3", "", ["pt_4", "pt_2"]),
        ("pt_5", "", [None, "pt_4"]),
        ("pt_0", "", ["pt_1", None]),
        ("pt_3", "organization=1&mode=live", ["pt_4", "pt_2"]),
        ("pt_3", "organization=1&mode=live&from=pt_1", ["pt_4", "pt_2"]),
        ("pt_3", "status=succeeded", ["pt_5", "pt_1"]),
        ("pt_2", "status=failed&since=2026-01-01", ["pt_4", "pt_0"]),
        ("pt_2", "q=even", ["pt_4", "pt_0"]),
        ("pt_2", "q=even&status=failed", ["pt_4", "pt_0"]),
        ("pt_4", "q=even", [None, "pt_2"]),
        ("pt_3", "unknown=1", ["pt_4", "pt_2"]),
        ("pt_3", "sort=asc", ["pt_2", "pt_4"]),
        ("pt_2", "sort=asc&q=even", ["pt_0", "pt_4"]),
        ("pt_5", "sort=asc&status=succeeded", ["pt_3", None]),
    ],
)
def test_neighbours_are_those_of_the_list(
    admin_client: Client, organization: Organization, payment_id: str, query: str, expected: list[str | None]
) -> None:
    assert neighbours(admin_client, page_of(payment_id, query)) == expected


def test_links_are_named_by_the_order_of_the_list(admin_client: Client, organization: Organization) -> None:
    newest_first, oldest_first = (
        re.findall(r'rel="(\w+)">\W*(\w+)', admin_client.get(page_of("pt_3", query)).content.decode())
        for query in ("", "sort=asc")
    )

    assert newest_first == [("prev", "Newer"), ("next", "Older")]
    assert oldest_first == [("prev", "Older"), ("next", "Newer")]


@pytest.mark.parametrize(
    "query",
    [
        "status=failed",
        "q=even",
        "q=pt_3",
        "status=lost",
        "since=soon",
        "organization=2",
        "organization=404",
        "organization=1&mode=test",
        "q=%00",
    ],
)
def test_payment_outside_the_list_has_no_neighbours(
    admin_client: Client, organization: Organization, query: str
) -> None:
    OrganizationFactory.create(id=2)

    response = admin_client.get(page_of("pt_3", query))

    assert response.status_code == 200
    assert list(links(response.content.decode())) == ["Back to the list"]


@pytest.mark.parametrize("query", ["", "status=failed&status=succeeded&q=order", "mode=live&since=2026-01-01"])
def test_links_lead_along_the_list_and_back_to_it(admin_client: Client, organization: Organization, query: str) -> None:
    page = admin_client.get(f"{LIST}?{query}").content.decode()
    first = re.search(r'<th scope="row" class="id"><a href="([^"]+)">', page)
    assert first is not None
    visited = [unescape(first[1])]
    while href := links(admin_client.get(visited[-1]).content.decode()).get("next"):
        visited.append(href)
    html = admin_client.get(visited[2]).content.decode()
    back = admin_client.get(links(html)["Back to the list"])

    assert [urlsplit(path).path.split("/")[-3] for path in visited] == [f"pt_5F{number}" for number in range(5, -1, -1)]
    assert links(html)["prev"] == visited[1]
    assert [payment.record.id for payment in back.context["payments"]] == ["pt_3", "pt_2", "pt_1", "pt_0"]
    expected = {**parse_qs(query), "organization": ["1"], "mode": ["live"]}
    assert parse_qs(urlsplit(visited[2]).query) == expected
    assert parse_qs(back.wsgi_request.META["QUERY_STRING"]) == {**expected, "from": ["pt_3"]}


def test_back_from_an_invalid_list_leads_to_the_list_of_the_organization(
    admin_client: Client, organization: Organization
) -> None:
    html = admin_client.get(page_of("pt_3", "status=lost")).content.decode()

    assert links(html) == {"Back to the list": f"{LIST}?organization=1&mode=live&from=pt_3"}


def fail_neighbours(error: Exception) -> Any:
    """Make the query that reads the neighbours fail. It alone also reads the revision."""

    def fail(execute: Any, statement: str, *rest: Any) -> Any:
        if "payments_payment" in statement and "UNION ALL" in statement:
            raise error
        return execute(statement, *rest)

    return connection.execute_wrapper(fail)


def test_neighbours_that_time_out_are_left_out(admin_client: Client, organization: Organization) -> None:
    with fail_neighbours(timeout_error()):
        response = admin_client.get(page_of("pt_3", "status=succeeded"))

    assert response.status_code == 200
    back = f"{LIST}?organization=1&mode=live&status=succeeded&from=pt_3"
    assert links(response.content.decode()) == {"Back to the list": back}


def test_other_database_errors_of_neighbours_are_reported(admin_client: Client, organization: Organization) -> None:
    admin_client.raise_request_exception = False
    with fail_neighbours(OperationalError("the connection is closed")):
        response = admin_client.get(page_of("pt_3"))

    assert response.status_code == 503


def test_neighbours_cost_one_statement_on_payments(admin_client: Client, organization: Organization) -> None:
    with CaptureQueriesContext(connection) as queries:
        admin_client.get(page_of("pt_3", "status=failed&status=succeeded"))

    statements = [query["sql"] for query in queries if '"payments_payment"' in query["sql"]]
    assert len(statements) == 2  # the payment, and its neighbours
