"""The constraints by which the database enforces the contract. The tests avoid all validation in Python."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import ProtectedError

from payments.models import ApiKey, Organization, Payment, PaymentsCannotBeDeleted, new_payment_id
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.sql import execute

pytestmark = pytest.mark.django_db


def assert_refused(**values: Any) -> None:
    payment = PaymentFactory.build(organization=OrganizationFactory.create(), **values)
    with pytest.raises(DatabaseError), transaction.atomic():
        Payment.objects.bulk_create([payment])


@pytest.mark.parametrize(
    "payment_id",
    ["", "pt_", "tr_1", "PT_1", "pt_a.b", "pt_é", "pt_1\n", " pt_1", "x\npt_1", "pt_" + "a" * 62],
)
def test_malformed_id_is_refused(payment_id: str) -> None:
    assert_refused(id=payment_id)


@pytest.mark.parametrize(
    "values",
    [
        {"mode": "prod"},
        {"mode": ""},
        {"status": "paid"},
        {"sequence_type": "last"},
        {"succeeded": True, "paid_at": None},
        {"method": "card.x"},
        {"method": "a b"},
        {"customer_id": "7"},
        {"metadata": "[]"},
        {"metadata": "not JSON"},
        {"metadata": '{"a":'},
        {"metadata": None},
        {"details": "7"},
        {"details": ""},
        {"amount": None},
        {"created_at": None, "paid_at": NOON},
        {"description": None},
        {"description": "é" * 8193},
        {"metadata": '{"a":"%s"}' % ("é" * 32_760)},
        {"details": '{"a":"%s"}' % ("x" * 65_536)},
        {"description": "x" * 16_384, "redirect_url": "x" * 16_384, "details": '{"a":"%s"}' % ("x" * 32_768)},
    ],
)
def test_payment_that_breaks_the_contract_is_refused(values: dict[str, Any]) -> None:
    assert_refused(**values)


@pytest.mark.parametrize("column", ["amount_net", "amount_remaining"])
def test_amount_has_a_value_and_a_currency_or_neither(column: str) -> None:
    payment = PaymentFactory.create(**{column: 1, f"{column}_currency": "EUR"})

    with pytest.raises(DatabaseError), transaction.atomic():
        Payment.objects.filter(id=payment.id).update(**{f"{column}_currency": None})


def test_payment_needs_an_existing_organization() -> None:
    with transaction.atomic():
        PaymentFactory.create(organization=None, organization_id=7)
        with pytest.raises(DatabaseError):
            connection.check_constraints()
        transaction.set_rollback(True)


def test_key_with_an_unknown_mode_is_refused() -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        ApiKeyFactory.create(mode="prod")


@pytest.mark.parametrize("organization_id", [0, -1])
def test_organization_id_is_positive(organization_id: int) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        Organization.objects.create(id=organization_id, name="x")


def test_times_are_truncated_to_milliseconds() -> None:
    time = datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=UTC)

    payment = PaymentFactory.create(created_at=time, expires_at=time, paid_at=time)

    payment.refresh_from_db()
    truncated = time.replace(microsecond=999_000)
    assert (payment.created_at, payment.expires_at, payment.paid_at) == (truncated, truncated, truncated)
    assert Payment.objects.filter(created_at=time).exists()


@pytest.mark.parametrize("value", ["0.01", "0.10", "9999999999999.99", "-9999999999999.99", "1234567890123.45"])
def test_amount_is_stored_exactly(value: str) -> None:
    payment = PaymentFactory.create(amount=value, amount_currency="XCG")

    payment.refresh_from_db()
    assert str(payment.amount) == value


def test_ids_are_compared_byte_by_byte() -> None:
    for name in ("a", "B", "A", "b", "0"):
        PaymentFactory.create(id=f"pt_{name}")

    assert list(Payment.objects.order_by("id").values_list("id", flat=True)) == ["pt_0", "pt_A", "pt_B", "pt_a", "pt_b"]


def test_new_ids_sort_by_time() -> None:
    first = new_payment_id()
    later = PaymentFactory.create(id=new_payment_id()).id

    assert first[:10] <= later[:10]
    assert first != later


def test_payment_cannot_be_deleted() -> None:
    payment = PaymentFactory.create()

    with pytest.raises(PaymentsCannotBeDeleted):
        payment.delete()
    with pytest.raises(PaymentsCannotBeDeleted):
        Payment.objects.all().delete()
    with pytest.raises(PaymentsCannotBeDeleted):
        Payment.objects.filter(id=payment.id).delete()
    with pytest.raises(ProtectedError):
        payment.organization.delete()
    with pytest.raises(ProtectedError):
        Organization.objects.all().delete()

    assert Payment.objects.filter(id=payment.id).exists()


def test_key_sees_payments_of_its_organization_and_mode() -> None:
    key = ApiKeyFactory.create()
    payment = PaymentFactory.create(organization=key.organization)
    PaymentFactory.create(organization=key.organization, test=True)
    PaymentFactory.create()

    assert list(Payment.objects.visible_to(key.access)) == [payment]


@pytest.mark.parametrize(
    ("values", "is_active"),
    [
        ({}, True),
        ({"expires_at": NOON + timedelta(seconds=1)}, True),
        ({"expires_at": NOON}, False),
        ({"revoked_at": NOON - timedelta(days=1)}, False),
        ({"revoked_at": NOON - timedelta(days=1), "expires_at": NOON + timedelta(days=1)}, False),
    ],
)
def test_key_is_active_until_it_expires_or_is_revoked(values: dict[str, Any], is_active: bool) -> None:
    ApiKeyFactory.create(**values)

    assert ApiKey.objects.active(now=NOON).exists() is is_active


def test_key_stores_the_end_of_its_text_as_a_hint() -> None:
    key, text = ApiKey.objects.issue(OrganizationFactory.create(), mode="live", name="Shop")

    key.refresh_from_db()
    assert key.hint == text[-4:]


def test_payment_without_a_change_is_refused() -> None:
    """The change feed would never return it."""
    PaymentFactory.create()

    with pytest.raises(IntegrityError), transaction.atomic():
        execute("UPDATE payments_payment SET change_id = NULL")


def test_form_creates_at_most_one_key() -> None:
    organization, form_id = OrganizationFactory.create(), uuid4()
    ApiKey.objects.issue(organization, mode="live", name="Shop", form_id=form_id)

    with pytest.raises(IntegrityError):
        ApiKey.objects.issue(organization, mode="test", name="Till", form_id=form_id)


def test_payments_have_exactly_these_indexes() -> None:
    with connection.cursor() as cursor:
        indexes = {
            name: [pair for pair in zip(constraint["columns"], constraint.get("orders") or [], strict=False) if pair[0]]
            for name, constraint in connection.introspection.get_constraints(cursor, "payments_payment").items()
            if constraint["index"] and not constraint["unique"]
        }

    newest_first = [("created_at", "DESC"), ("id", "DESC")]
    access = [("organization_id", "ASC"), ("mode", "ASC")]
    terms: dict[str, Any] = {"payment_terms": [], "payment_search": []}
    on_postgresql = terms if connection.vendor == "postgresql" else {}
    assert indexes == on_postgresql | {
        "payment_list": [*access, *newest_first],
        "payment_status": [*access, ("status", "ASC"), *newest_first],
        "payment_in_flight": [*access, *newest_first],
        "payment_customer": [*access, ("customer_id", "ASC"), *newest_first],
        "payment_paid": [*access, ("created_at", "DESC")],  # the paid day is an expression
        "payment_change": [("change_id", "ASC"), *access],
    }
