"""Compiled statements return the same rows as the ORM, and records have the values of the models."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import close_old_connections, connection, connections, transaction
from django.db.models import Value
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st
from moneyed import Money

from payments.database.statements import Placeholder, Statement
from payments.listing import Listing, payment_statement
from payments.models import ApiKey, Payment, Status
from payments.page import page_query, page_querysets, page_statement
from payments.record import encode
from payments.routing import fetch_rows, find_payment
from payments.rows import build_record
from tests.support.factories import ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.scale import examples

pytestmark = pytest.mark.django_db

EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
MILLISECONDS_MAX = (datetime(9999, 12, 31, tzinfo=UTC) - EARLIEST) // timedelta(milliseconds=1)

moments = st.integers(0, MILLISECONDS_MAX).map(lambda count: EARLIEST + timedelta(milliseconds=count))
values = st.integers(-(10**15 - 1), 10**15 - 1).map(lambda cents: Decimal(cents) / 100)
amounts = st.builds(Money, values, st.sampled_from(["EUR", "JPY", "USD"]))
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
payments = st.fixed_dictionaries(
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
)


def reference_record(payment: Payment) -> dict[str, Any]:
    """Build a record from the values of a model, field by field."""

    def money(amount: Money | None) -> dict[str, str] | None:
        return None if amount is None else {"value": f"{amount.amount:.2f}", "currency": amount.currency.code}

    def time(moment: datetime | None) -> str | None:
        return None if moment is None else moment.replace(tzinfo=None).isoformat(timespec="milliseconds")

    values = {
        "id": payment.id,
        "resource": "payment",
        "mode": payment.mode,
        "amount": money(payment.amount),
        "amountNet": money(payment.amount_net),
        "amountRemaining": money(payment.amount_remaining),
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


@given(st.lists(payments, min_size=1, max_size=3, unique_by=lambda payment: payment["id"]))
@settings(max_examples=examples(60, long=2_000))
def test_record_has_the_values_of_the_model(described: list[dict[str, Any]]) -> None:
    with transaction.atomic():
        key = ApiKeyFactory.create(organization=OrganizationFactory.create(id=7), mode="live")
        for values in described:
            PaymentFactory.create(organization=key.organization, mode="live", **values)
        for payment in Payment.objects.all():
            [row] = find_payment(Listing(key.access), payment.id).rows
            assert row is not None

            written = encode(build_record(row)).decode()

            assert list(json.loads(written).items()) == list(reference_record(payment).items())
        transaction.set_rollback(True)


@given(st.lists(st.tuples(st.integers(0, 2), st.text("09AZaz", min_size=1, max_size=3)), max_size=20), st.data())
@settings(max_examples=examples(60, long=2_000))
def test_compiled_page_equals_the_query_of_the_orm(positions: list[tuple[int, str]], data: st.DataObject) -> None:
    described = {f"pt_{name}": EARLIEST + timedelta(days=9999, milliseconds=instant) for instant, name in positions}
    start = data.draw(st.sampled_from([None, "pt_unknown", *described]))
    limit = data.draw(st.integers(1, 6))
    with transaction.atomic():
        key = ApiKeyFactory.create(organization=OrganizationFactory.create(id=7), mode="live")
        for payment_id, created_at in described.items():
            PaymentFactory.create(organization=key.organization, id=payment_id, created_at=created_at)
        [by_orm] = page_querysets(
            Payment.objects.visible_to(key.access), start=None if start is None else Value(start), limit=limit
        )

        compiled = fetch_rows(Listing(key.access), page_query(Listing(key.access), start=start, limit=limit)).rows

        assert compiled == list(by_orm)
        transaction.set_rollback(True)


def test_same_shape_is_compiled_once() -> None:
    assert page_statement(limit=20, has_start=True) is page_statement(limit=20, has_start=True)
    assert page_statement(limit=20, has_start=True) is not page_statement(limit=20, has_start=False)
    assert payment_statement() is payment_statement()


def test_statement_of_a_page_has_three_placeholders() -> None:
    sql = page_statement(limit=20, has_start=True).sql

    assert {name.split(")")[0] for name in sql.split("%(")[1:]} == {"organization_id", "mode", "start"}


CANNOT_BE_COMPILED = "Only placeholders and columns without a converter can be compiled: SELECT"


def test_value_without_a_placeholder_is_refused() -> None:
    with pytest.raises(ValueError, match=CANNOT_BE_COMPILED):
        Statement(Payment.objects.filter(id="pt_1").values_list("id"))


@pytest.mark.only("sqlite")
def test_column_with_a_converter_is_refused() -> None:
    with pytest.raises(ValueError, match=CANNOT_BE_COMPILED):
        Statement(Payment.objects.filter(id=Placeholder("id")).values_list("created_at", "amount"))


@pytest.mark.django_db(transaction=True)
def test_statement_runs_on_a_new_connection(key: ApiKey) -> None:
    statement = Statement(ApiKey.objects.filter(digest=Placeholder("digest")).values_list("id"))
    before = statement.rows({"digest": key.digest})

    connection.close()

    assert statement.rows({"digest": key.digest}) == before == [(key.pk,)]


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
def test_connection_that_the_server_ended_is_replaced_before_use(key: ApiKey) -> None:
    statement = Statement(ApiKey.objects.filter(digest=Placeholder("digest")).values_list("id"))
    statement.rows({"digest": key.digest})
    process_id = connection.connection.info.backend_pid
    other = connections.create_connection("default")
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [process_id])
    other.close()

    close_old_connections()

    assert statement.rows({"digest": key.digest}) == [(key.pk,)]
    assert connection.connection.info.backend_pid != process_id


def test_statement_is_visible_to_query_capture_and_wrappers(key: ApiKey) -> None:
    statement = Statement(ApiKey.objects.filter(digest=Placeholder("digest")).values_list("id"))
    wrapped: list[str] = []

    def record_sql(execute: Any, sql: str, *rest: Any) -> Any:
        wrapped.append(sql)
        return execute(sql, *rest)

    with CaptureQueriesContext(connection) as captured:
        statement.rows({"digest": key.digest})
    with connection.execute_wrapper(record_sql):
        statement.rows({"digest": key.digest})

    assert len(captured) == len(wrapped) == 1
