"""GET /v2/payments/{id}."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from payments.models import Organization, Payment
from tests.support.api import Api
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.sql import tables_read

pytestmark = pytest.mark.also("citus")


@pytest.fixture
def payment(organization: Organization) -> Payment:
    return PaymentFactory.create(id="pt_own", organization=organization)


def test_self_of_a_record_leads_to_the_record(api: Api, payment: Payment) -> None:
    [record] = api.get().json()["_embedded"]["payments"]

    response = api.follow(record["_links"]["self"]["href"])

    assert response.status_code == 200
    assert response["Content-Type"] == "application/hal+json"
    assert response.json() == record


def test_record_costs_two_queries(api: Api, payment: Payment) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get("/v2/payments/pt_own")

    assert tables_read(queries) == ["payments_apikey", "payments_payment"]


def test_unknown_foreign_and_malformed_ids_get_the_same_response(api: Api, organization: Organization) -> None:
    PaymentFactory.create(id="pt_other", organization=OrganizationFactory.create(id=2))
    PaymentFactory.create(id="pt_test", organization=organization, test=True)

    responses = [
        api.get(f"/v2/payments/{name}")
        for name in (
            "pt_other",
            "pt_test",
            "pt_unknown",
            "tr_1",
            "pt_",
            "pt_%00",
            "pt_a%0A",
            "pt_%FF",
            "pt_" + "a" * 62,
        )
    ]

    assert {response.status_code for response in responses} == {404}
    assert len({response.content for response in responses}) == 1
    assert len({tuple(response.items()) for response in responses}) == 1


def test_ids_are_case_sensitive(api: Api, payment: Payment) -> None:
    assert api.get("/v2/payments/pt_own").status_code == 200
    assert api.get("/v2/payments/pt_OWN").status_code == 404


@pytest.mark.parametrize("relation", ["dashboard", "documentation"])
def test_other_links_of_a_record_resolve(api: Api, payment: Payment, admin_client: object, relation: str) -> None:
    record = api.get("/v2/payments/pt_own").json()

    response = Api(admin_client, api.key).follow(record["_links"][relation]["href"])  # type: ignore[arg-type]

    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("trait", ["open", "pending", "authorized", "succeeded", "failed", "canceled", "expired"])
def test_record_has_its_status_and_paid_at_only_if_it_succeeded(
    api: Api, organization: Organization, trait: str
) -> None:
    payment = PaymentFactory.create(organization=organization, **{trait: True})

    record = api.get(f"/v2/payments/{payment.id}").json()

    assert record["status"] == trait
    assert ("paidAt" in record) is (trait == "succeeded")
