"""GET /v2/payments/{id}."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.models import Organization, Payment, Status
from payments.record import encode
from tests.support.api import Api
from tests.support.factories import ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.scale import examples
from tests.support.sql import key_and_content, tables_read

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


def test_record_needs_one_statement_with_its_key(api: Api, payment: Payment) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get("/v2/payments/pt_own")

    assert tables_read(queries) == key_and_content()


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


EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
MILLISECONDS_MAX = (datetime(9999, 12, 31, tzinfo=UTC) - EARLIEST) // timedelta(milliseconds=1)

moments = st.integers(0, MILLISECONDS_MAX).map(lambda count: EARLIEST + timedelta(milliseconds=count))
values = st.integers(-(10**15 - 1), 10**15 - 1).map(lambda cents: Decimal(cents) / 100)
amounts = st.tuples(values, st.sampled_from(["EUR", "JPY", "USD"]))
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


def in_columns(values: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a payment whose amounts are pairs."""
    for name in ("amount", "amount_net", "amount_remaining"):
        values[name], values[f"{name}_currency"] = values[name] or (None, None)
    return values


described_payments = st.fixed_dictionaries(
    {
        "id": st.text("09AZaz", min_size=1, max_size=61).map("pt_{}".format),
        "amount": amounts,
        "amount_net": st.none() | amounts,
        "amount_remaining": st.none() | amounts,
        "description": texts,
        "method": st.sampled_from(["", "creditcard"]),
        "redirect_url": st.sampled_from(["", 'https://shop.example/?q=%s&r="é']),
        "webhook_url": st.sampled_from(["", "https://shop.example/"]),
        "status": st.sampled_from(Status.values),
        "metadata": st.dictionaries(texts, texts, max_size=2).map(lambda texts: encode(texts).decode()),
        "details": st.none() | st.dictionaries(texts, texts, max_size=2).map(lambda texts: encode(texts).decode()),
        "created_at": moments,
        "expires_at": st.none() | moments,
        "paid_at": moments,
        "customer_id": st.sampled_from(["", "ct_7"]),
    }
).map(in_columns)


def reference_record(payment: Payment) -> dict[str, Any]:
    """Build a record from the values of a model, field by field."""

    def money(amount: Decimal | None, currency: str | None) -> dict[str, str | None] | None:
        return None if amount is None else {"value": f"{amount:.2f}", "currency": currency}

    def time(moment: datetime | None) -> str | None:
        return None if moment is None else moment.replace(tzinfo=None).isoformat(timespec="milliseconds")

    values = {
        "id": payment.id,
        "resource": "payment",
        "mode": payment.mode,
        "amount": money(payment.amount, payment.amount_currency),
        "amountNet": money(payment.amount_net, payment.amount_net_currency),
        "amountRemaining": money(payment.amount_remaining, payment.amount_remaining_currency),
        "description": payment.description,
        "method": payment.method or None,
        "redirectUrl": payment.redirect_url or None,
        "webhookUrl": payment.webhook_url or None,
        "status": payment.status,
        "organizationId": str(payment.organization_id),
        "sequenceType": payment.sequence_type,
        "metadata": json.loads(payment.metadata),
        "details": None if payment.details is None else json.loads(payment.details),
        "createdAt": time(payment.created_at),
        "expiresAt": time(payment.expires_at),
        "paidAt": time(payment.paid_at),
        "customerId": payment.customer_id or None,
    }
    return {name: value for name, value in values.items() if value is not None}


@given(st.lists(described_payments, min_size=1, max_size=3, unique_by=lambda payment: payment["id"]))
@settings(max_examples=examples(60, long=2_000))
@pytest.mark.django_db
@pytest.mark.only("sqlite", "postgresql")
def test_record_has_the_values_of_the_model(described: list[dict[str, Any]]) -> None:
    client = Client()
    with transaction.atomic():
        api = Api(client, ApiKeyFactory.create(organization=OrganizationFactory.create(id=7), mode="live"))
        for values in described:
            PaymentFactory.create(organization=api.key.organization, mode="live", **values)
        for payment in Payment.objects.all():
            record = api.get(f"/v2/payments/{payment.id}").json()

            del record["_links"]
            assert list(record.items()) == list(reference_record(payment).items())
        transaction.set_rollback(True)
