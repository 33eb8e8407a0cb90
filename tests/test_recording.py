"""Every write of payments by the ORM renews the revisions of their organizations and modes, and no other revision."""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core import serializers
from django.core.exceptions import FieldDoesNotExist
from django.db import DatabaseError, connection, transaction
from django.db.models import Count, F
from django.db.models.functions import Upper
from django.test.utils import CaptureQueriesContext

from payments.models import Access, Organization, Payment, PaymentQuerySet, SequenceType, Status
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.revisions import renewed_by, written_states

LIVE, TEST = Access(1001, "live"), Access(1001, "test")
OTHER_LIVE = Access(1002, "live")
LATER = NOON + timedelta(seconds=1)


@pytest.fixture
def payments(db: None) -> None:
    """`pt_1` of the first organization and `pt_2` of the second one, both live."""
    for number in (1, 2):
        PaymentFactory.create(id=f"pt_{number}", organization=OrganizationFactory.create(id=1000 + number))


def new_values(**changes: Any) -> dict[str, Any]:
    """Return the fields of a new payment, apart from its ID."""
    values = {"status": Status.OPEN, "sequence_type": SequenceType.ONEOFF, "created_at": NOON}
    return {
        "organization": Organization(id=1001),
        "mode": "live",
        "amount": 1,
        "amount_currency": "EUR",
        **values,
        **changes,
    }


def new_payment(payment_id: str = "pt_new", **changes: Any) -> Payment:
    return Payment(id=payment_id, **new_values(**changes))


def stored(**changes: Any) -> Payment:
    """Return the stored payment `pt_1`, with changes that are not saved."""
    payment = Payment.objects.get(id="pt_1")
    for name, value in {"description": "changed", **changes}.items():
        setattr(payment, name, value)
    return payment


# How the tests call each method. The asynchronous method of the same name gets the same arguments.
CALLS: dict[str, Callable[[Any], object]] = {
    "create": lambda method: method(id="pt_new", **new_values()),
    "bulk_create": lambda method: method([new_payment()]),
    "update": lambda method: method(description="changed"),
    "bulk_update": lambda method: method([stored()], ["description"]),
    "get_or_create": lambda method: method(id="pt_new", defaults=new_values()),
    "update_or_create": lambda method: method(id="pt_1", defaults={"description": "changed"}),
    "save": lambda method: method(),
    "save_base": lambda method: method(raw=True),  # as loaddata
}
REFUSED = {"delete", "adelete", "add", "aadd", "set", "aset"}

OWNERS: dict[str, Callable[[], Any]] = {
    "manager": lambda: Payment.objects,
    "queryset": lambda: Payment.objects.filter(id="pt_1"),
    "related manager": lambda: Organization(id=1001).payments,
    "payment": stored,
}
CLASSES: tuple[type, ...] = (type(Payment.objects), PaymentQuerySet, type(Organization(id=1).payments), Payment)


def writing_methods(owner: type) -> set[str]:
    """Return the public methods that Django marks as changing data."""
    names = {name for name in dir(owner) if not name.startswith("_")}
    return {name for name in names if getattr(getattr(owner, name, None), "alters_data", False)}


def untested_methods(owner: type) -> set[str]:
    return {name for name in writing_methods(owner) - REFUSED if call_of(name) is None}


def call_of(name: str) -> Callable[[Any], object] | None:
    return CALLS.get(name) or CALLS.get(name.removeprefix("a"))


def complete(result: object) -> None:
    """Wait for the result of an asynchronous method."""

    async def wait(result: Awaitable[object]) -> object:
        return await result

    if inspect.isawaitable(result):
        async_to_sync(wait)(result)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (owner, name)
        for owner, class_ in zip(OWNERS, CLASSES, strict=True)
        for name in sorted(writing_methods(class_) - REFUSED)
    ],
)
def test_writing_method_renews_the_revision(payments: None, owner: str, name: str) -> None:
    call = call_of(name)
    assert call is not None

    renewed = renewed_by(lambda: complete(call(getattr(OWNERS[owner](), name))))

    updates_all = owner == "manager" and name.removeprefix("a") == "update"
    assert renewed == ({LIVE, OTHER_LIVE} if updates_all else {LIVE})


def test_writing_methods_are_found() -> None:
    manager, queryset, related_manager, payment = map(writing_methods, CLASSES)

    assert {"create", "aupdate", "bulk_update"} <= manager < queryset
    assert related_manager - manager == {"add", "aadd", "set", "aset"}
    assert payment == {"save", "asave", "save_base", "delete", "adelete"}


def test_writing_method_of_a_later_django_is_noticed() -> None:
    class LaterQuerySet(PaymentQuerySet):
        def merge(self) -> None: ...

        merge.alters_data = True  # type: ignore[attr-defined]

    assert [untested_methods(owner) for owner in (*CLASSES, LaterQuerySet)] == [set(), set(), set(), set(), {"merge"}]


def load_fixture(payment: Payment) -> None:
    """Save a payment as loaddata does."""
    (loaded,) = serializers.deserialize("json", serializers.serialize("json", [payment]))
    loaded.save()


WRITES: dict[str, tuple[Callable[[], object], set[Access]]] = {
    "update of no payment": (lambda: Payment.objects.filter(id="pt_3").update(description=""), set()),
    "update with a join": (
        lambda: Payment.objects.filter(organization__name__endswith="2").update(method=""),
        {OTHER_LIVE},
    ),
    "update with an aggregate": (
        lambda: Payment.objects.annotate(keys=Count("organization__keys")).filter(keys=0, id="pt_2").update(method=""),
        {OTHER_LIVE},
    ),
    "update with an annotation": (
        lambda: Payment.objects.annotate(upper=Upper("description")).update(description=F("upper")),
        {LIVE, OTHER_LIVE},
    ),
    "update of distinct payments": (lambda: Payment.objects.filter(id="pt_1").distinct().update(method=""), {LIVE}),
    "update of values": (lambda: Payment.objects.filter(id="pt_1").values("mode").update(method=""), {LIVE}),
    "update of locked payments": (
        lambda: Payment.objects.order_by("id").select_for_update().update(method=""),
        {LIVE, OTHER_LIVE},
    ),
    "bulk_update of two organizations": (
        lambda: Payment.objects.bulk_update(Payment.objects.all(), ["method"]),
        {LIVE, OTHER_LIVE},
    ),
    "save of a new payment": (lambda: new_payment(mode="test").save(), {TEST}),
    "save of the description alone": (lambda: stored(mode="test").save(update_fields=["description"]), {LIVE}),
    "loaddata of a new payment": (lambda: load_fixture(new_payment(mode="test")), {TEST}),
    "loaddata of a stored payment": (lambda: load_fixture(stored()), {LIVE}),
    "get_or_create of a stored payment": (lambda: Payment.objects.get_or_create(id="pt_1"), set()),
    "bulk_create of nothing": (lambda: Payment.objects.bulk_create([]), set()),
    "bulk_create in two modes": (
        lambda: Payment.objects.bulk_create([new_payment("pt_3"), new_payment("pt_4", mode="test")]),
        {LIVE, TEST},
    ),
    "bulk_create that ignores the payment of another organization": (
        lambda: Payment.objects.bulk_create([new_payment("pt_2"), new_payment("pt_3")], ignore_conflicts=True),
        {LIVE},
    ),
}


@pytest.mark.parametrize("write", WRITES)
def test_write_renews_the_revisions_of_changed_payments(payments: None, write: str) -> None:
    action, expected = WRITES[write]

    assert renewed_by(action) == expected


class Aborted(Exception):
    """Ends a transaction."""


def test_aborted_write_renews_nothing(payments: None) -> None:
    def abort() -> None:
        with suppress(Aborted), transaction.atomic():
            Payment.objects.create(id="pt_new", **new_values(mode="test"))
            Payment.objects.update(description="changed")
            raise Aborted

    assert renewed_by(abort) == set()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["create", "update", "bulk_create"])
def test_write_that_cannot_renew_the_revision_is_undone(payments: None, name: str) -> None:
    def fail(execute: Callable[..., Any], sql: str, *arguments: Any) -> Any:
        if "payments_accessstate" in sql:
            raise DatabaseError
        return execute(sql, *arguments)

    with connection.execute_wrapper(fail), suppress(DatabaseError):
        CALLS[name](getattr(Payment.objects, name))

    assert not Payment.objects.filter(id="pt_new").exists()
    assert not Payment.objects.filter(description="changed").exists()


def test_states_are_locked_in_order(payments: None) -> None:
    new = [new_payment("pt_3", organization=Organization(id=1002)), new_payment("pt_4", mode="test"), new_payment()]

    with CaptureQueriesContext(connection) as queries:
        Payment.objects.bulk_create(new)
        Payment.objects.order_by("-id").update(description="changed")

    assert written_states(queries) == 2 * [LIVE, TEST, OTHER_LIVE]


def test_update_returns_the_number_of_payments_and_forgets_old_results(payments: None) -> None:
    all_payments = Payment.objects.order_by("id")
    before = [payment.description for payment in all_payments]

    assert all_payments.update(description="changed") == len(before)

    assert [payment.description for payment in all_payments] == ["changed", "changed"]


def test_save_of_an_expression_to_a_missing_payment_is_an_error(payments: None) -> None:
    with pytest.raises(DatabaseError, match="did not affect any rows"):
        stored(id="pt_3", description=Upper("method")).save(update_fields=["description"])


def test_save_of_an_expression_stores_its_value(payments: None) -> None:
    payment = stored(description=Upper("id"))
    payment.save()
    payment.refresh_from_db()

    assert payment.description == "PT_1"


MOVES: dict[str, Callable[[], object]] = {
    "update of the ID": lambda: Payment.objects.filter(id="pt_1").update(id="pt_3"),
    "update of the mode": lambda: Payment.objects.update(mode="test"),
    "update of the organization": lambda: Payment.objects.update(organization=Organization(id=1002)),
    "update of the creation time": lambda: Payment.objects.filter(id="pt_1").update(created_at=LATER),
    "bulk_update": lambda: Payment.objects.bulk_update([stored(mode="test")], ["mode"]),
    "save of the mode": lambda: stored(mode="test").save(),
    "save of the organization": lambda: stored(organization_id=1002).save(update_fields=["organization"]),
    "save of the creation time": lambda: stored(created_at=LATER).save(),
    "loaddata": lambda: load_fixture(stored(mode="test")),
    "add": lambda: Organization(id=1002).payments.add(Payment.objects.get(id="pt_1")),
    "add without bulk": lambda: Organization(id=1002).payments.add(Payment.objects.get(id="pt_1"), bulk=False),
}


@pytest.mark.parametrize("move", MOVES)
def test_payment_cannot_move(payments: None, move: str) -> None:
    before = list(Payment.objects.order_by("id").values())

    with pytest.raises(ValueError, match="never change"), transaction.atomic():
        MOVES[move]()

    assert list(Payment.objects.order_by("id").values()) == before


def test_bulk_create_cannot_update_payments(payments: None) -> None:
    """It finds them by the ID alone: they may be of another organization."""
    with pytest.raises(ValueError, match="Next: use update"):
        Payment.objects.bulk_create(
            [new_payment("pt_2")], update_conflicts=True, update_fields=["description"], unique_fields=["id"]
        )


def test_update_of_an_unknown_field_is_an_error_without_payments(db: None) -> None:
    with pytest.raises(FieldDoesNotExist):
        Payment.objects.update(unknown=1)  # type: ignore[misc]
