"""A list without payments says why, and what to do next."""

import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments.models import Organization
from tests.support.factories import OrganizationFactory, PaymentFactory

pytestmark = pytest.mark.also("citus")

LIST = "/admin/payments/payment/"
IMPORT = "manage.py import_payments FILE"
REMOVE = "Clear all"


@pytest.fixture
def organization(db: None) -> Organization:
    organization: Organization = OrganizationFactory.create(id=1, name="Books & more")
    return organization


def link(html: str, text: str) -> str:
    """Return the target of the link with this text."""
    match = re.search(rf'<a href="([^"]+)">{text}</a>', html)
    assert match is not None, text
    return unescape(match[1])


@pytest.mark.parametrize("mode", ["live", "test"])
def test_empty_organization_explains_the_import(admin_client: Client, organization: Organization, mode: str) -> None:
    PaymentFactory.create(organization=OrganizationFactory.create(id=2))

    html = admin_client.get(LIST, {"mode": mode}).content.decode()

    assert "Books &amp; more</bdi> has no payments yet" in html
    assert IMPORT in html
    assert admin_client.get(link(html, "Filling the service")).status_code == 200
    assert "No payments match" not in html


@pytest.mark.parametrize(("mode", "other"), [("live", "test"), ("test", "live")])
def test_list_without_payments_of_its_mode_links_to_the_other(
    admin_client: Client, organization: Organization, mode: str, other: str
) -> None:
    PaymentFactory.create(id="pt_1", organization=organization, mode=other)

    html = admin_client.get(LIST, {"mode": mode}).content.decode()

    assert f"has no {mode} payments." in html
    assert IMPORT not in html
    assert "pt_1" in admin_client.get(f"{LIST}{link(html, f'View its {other} payments')}").content.decode()


@pytest.mark.parametrize(
    "query", ["status=failed", "q=nothing", "q=9.99", "until=2000-01-01", "method=ideal&q=nothing"]
)
def test_filters_without_a_result_can_be_removed(admin_client: Client, organization: Organization, query: str) -> None:
    PaymentFactory.create(id="pt_1", organization=organization)
    other: Organization = OrganizationFactory.create(id=2)
    PaymentFactory.create(id="pt_2", organization=other, mode="test")

    html = admin_client.get(f"{LIST}?organization=2&mode=test&{query}").content.decode()

    assert "No payments match" in html
    assert IMPORT not in html
    assert "pt_2" in admin_client.get(f"{LIST}{link(html, REMOVE)}").content.decode()


@pytest.mark.parametrize("query", ["status=lost", "q=pt_404", "organization=404"])
def test_invalid_list_is_not_called_empty(admin_client: Client, organization: Organization, query: str) -> None:
    html = admin_client.get(f"{LIST}?{query}").content.decode()

    assert IMPORT not in html
    assert "No payments match" not in html


@pytest.mark.parametrize(("query", "cost"), [("", 1), ("status=failed", 0), ("q=nothing", 1), ("from=pt_1", 0)])
def test_reason_costs_at_most_one_query_of_one_payment(
    admin_client: Client, organization: Organization, query: str, cost: int
) -> None:
    PaymentFactory.create(id="pt_1", organization=organization, mode="test")

    with CaptureQueriesContext(connection) as queries:
        admin_client.get(f"{LIST}?{query}")

    statements = [query["sql"] for query in queries if query["sql"].startswith("SELECT 1 AS")]
    assert len([statement for statement in statements if "payments_payment" in statement]) == cost
    assert all(statement.endswith("LIMIT 1") for statement in statements if "payments_payment" in statement)
