"""GET /v2/payments/{id}."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from payments.models import Organization, Payment
from tests.support.api import Api
from tests.support.factories import OrganizationFactory, PaymentFactory


@pytest.fixture
def payment(organization: Organization) -> Payment:
    return PaymentFactory.create(id="pt_mine", organization=organization)


def test_a_records_self_gives_the_record(api: Api, payment: Payment) -> None:
    (in_list,) = api.get().json()["_embedded"]["payments"]

    response = api.follow(in_list["_links"]["self"]["href"])

    assert response.status_code == 200
    assert response["Content-Type"] == "application/hal+json"
    assert response.json() == in_list


def test_a_record_costs_two_queries(api: Api, payment: Payment) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get("/v2/payments/pt_mine")

    assert [query["sql"].split('FROM "')[1].split('"')[0] for query in queries] == [
        "payments_apikey",
        "payments_payment",
    ]


def test_unknown_foreign_and_malformed_ids_cannot_be_told_apart(api: Api, organization: Organization) -> None:
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
    assert api.get("/v2/payments/pt_mine").status_code == 200
    assert api.get("/v2/payments/pt_MINE").status_code == 404


@pytest.mark.parametrize("relation", ["dashboard", "documentation"])
def test_a_records_other_links_resolve(api: Api, payment: Payment, admin_client: object, relation: str) -> None:
    record = api.get("/v2/payments/pt_mine").json()

    response = Api(admin_client, api.key).follow(record["_links"][relation]["href"])  # type: ignore[arg-type]

    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("trait", ["open", "pending", "authorized", "succeeded", "failed", "canceled", "expired"])
def test_a_record_says_its_status_and_whether_it_was_paid(api: Api, organization: Organization, trait: str) -> None:
    payment = PaymentFactory.create(organization=organization, **{trait: True})

    record = api.get(f"/v2/payments/{payment.id}").json()

    assert record["status"] == trait
    assert ("paidAt" in record) is (trait == "succeeded")
