"""The rules of the contract, as the database itself keeps them; nothing here goes through a check of Python's."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import ProtectedError
from moneyed import Money

from payments.models import ApiKey, Organization, Payment, PaymentsCannotBeDeleted, new_payment_id
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory

pytestmark = pytest.mark.django_db


def assert_refused(**values: Any) -> None:
    payment = PaymentFactory.build(organization=OrganizationFactory.create(), **values)
    with pytest.raises(DatabaseError), transaction.atomic():
        Payment.objects.bulk_create([payment])


@pytest.mark.parametrize(
    "payment_id",
    ["", "pt_", "tr_1", "PT_1", "pt_a-b", "pt_é", "pt_1\n", " pt_1", "x\npt_1", "pt_" + "a" * 62],
)
def test_an_id_has_its_form(payment_id: str) -> None:
    assert_refused(id=payment_id)


@pytest.mark.parametrize(
    "values",
    [
        {"mode": "prod"},
        {"mode": ""},
        {"status": "paid"},
        {"sequence_type": "last"},
        {"succeeded": True, "paid_at": None},
        {"method": "Card"},
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
    ],
)
def test_a_payment_keeps_to_the_contract(values: dict[str, Any]) -> None:
    assert_refused(**values)


@pytest.mark.parametrize("column", ["amount_net", "amount_remaining"])
def test_a_value_has_a_currency_or_there_is_neither(column: str) -> None:
    payment = PaymentFactory.create(**{column: Money(1, "EUR")})

    with pytest.raises(DatabaseError), transaction.atomic():
        Payment.objects.filter(id=payment.id).update(**{f"{column}_currency": None})


def test_a_payment_needs_its_organization() -> None:
    with transaction.atomic():
        PaymentFactory.create(organization=None, organization_id=7)
        with pytest.raises(DatabaseError):
            connection.check_constraints()
        transaction.set_rollback(True)


def test_a_key_has_a_mode_that_exists() -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        ApiKeyFactory.create(mode="prod")


@pytest.mark.parametrize("organization_id", [0, -1])
def test_an_organizations_id_is_positive(organization_id: int) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        Organization.objects.create(id=organization_id, name="x")


def test_times_are_kept_to_the_millisecond_never_rounded_up() -> None:
    moment = datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=UTC)

    payment = PaymentFactory.create(created_at=moment, expires_at=moment, paid_at=moment)

    payment.refresh_from_db()
    kept = moment.replace(microsecond=999_000)
    assert (payment.created_at, payment.expires_at, payment.paid_at) == (kept, kept, kept)
    assert Payment.objects.filter(created_at=moment).exists()


@pytest.mark.parametrize("value", ["0.01", "0.10", "9999999999999.99", "-9999999999999.99", "1234567890123.45"])
def test_money_is_kept_exactly(value: str) -> None:
    payment = PaymentFactory.create(amount=Money(value, "XCG"))

    payment.refresh_from_db()
    assert str(payment.amount.amount) == value


def test_ids_are_compared_byte_by_byte() -> None:
    for name in ("a", "B", "A", "b", "0"):
        PaymentFactory.create(id=f"pt_{name}")

    assert list(Payment.objects.order_by("id").values_list("id", flat=True)) == ["pt_0", "pt_A", "pt_B", "pt_a", "pt_b"]


def test_new_ids_are_ordered_by_time() -> None:
    first = new_payment_id()
    later = PaymentFactory.create(id=new_payment_id()).id

    assert first[:10] <= later[:10]
    assert first != later


def test_a_payment_cannot_be_deleted() -> None:
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


def test_a_payment_is_read_through_its_key_alone() -> None:
    key = ApiKeyFactory.create()
    mine = PaymentFactory.create(organization=key.organization)
    PaymentFactory.create(organization=key.organization, test=True)
    PaymentFactory.create()

    assert list(Payment.objects.visible_to(key.access)) == [mine]


@pytest.mark.parametrize(
    ("values", "usable"),
    [
        ({}, True),
        ({"expires_at": NOON + timedelta(seconds=1)}, True),
        ({"expires_at": NOON}, False),
        ({"revoked_at": NOON - timedelta(days=1)}, False),
        ({"revoked_at": NOON - timedelta(days=1), "expires_at": NOON + timedelta(days=1)}, False),
    ],
)
def test_a_key_is_usable_until_it_expires_or_is_revoked(values: dict[str, Any], usable: bool) -> None:
    ApiKeyFactory.create(**values)

    assert ApiKey.objects.usable(now=NOON).exists() is usable


def test_there_are_as_many_indexes_as_are_needed() -> None:
    with connection.cursor() as cursor:
        indexes = {
            name: [pair for pair in zip(constraint["columns"], constraint.get("orders") or [], strict=False) if pair[0]]
            for name, constraint in connection.introspection.get_constraints(cursor, "payments_payment").items()
            if constraint["index"] and not constraint["unique"]
        }

    newest_first = [("created_at", "DESC"), ("id", "DESC")]
    of_whom = [("organization_id", "ASC"), ("mode", "ASC")]
    on_postgresql: dict[str, Any] = {"payment_holds": []} if connection.vendor == "postgresql" else {}
    assert indexes == on_postgresql | {
        "payment_list": [*of_whom, *newest_first],
        "payment_status": [*of_whom, ("status", "ASC"), *newest_first],
        "payment_in_flight": [*of_whom, *newest_first],
        "payment_customer": [*of_whom, ("customer_id", "ASC"), *newest_first],
        "payment_description": of_whom,
    }
