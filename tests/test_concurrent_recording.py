"""A payment that another transaction changes in the middle of a write is not changed without a new revision."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from payments.models import Access, Organization, Payment, SequenceType, Status
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.revisions import renewed_by
from tests.support.threads import call_while_held, in_thread, wait_until_blocked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgresql")]

LIVE, TEST, OTHER_LIVE = Access(1001, "live"), Access(1001, "test"), Access(1002, "live")

# Copies the payment of the second organization.
INSERT_OTHER = """
    CREATE TEMPORARY TABLE other AS SELECT * FROM payments_payment WHERE id = 'pt_2';
    UPDATE other SET id = 'pt_new';
    INSERT INTO payments_payment SELECT * FROM other
"""


@pytest.fixture(autouse=True)
def payments() -> None:
    """`pt_1` of the first organization and `pt_2` of the second one, both live."""
    for number in (1, 2):
        organization = OrganizationFactory.create(id=1000 + number)
        PaymentFactory.create(id=f"pt_{number}", organization=organization, description=str(number))


def execute_elsewhere(sql: str) -> None:
    """Run SQL on another connection, and commit."""
    with closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute(sql)


@contextmanager
def before_write(sql: str) -> Iterator[None]:
    """Run SQL on another connection just before the first statement that writes payments."""
    pending = [sql]

    def run_first(execute: Callable[..., Any], statement: str, *arguments: Any) -> Any:
        if pending and statement.startswith(('UPDATE "payments_payment"', 'INSERT INTO "payments_payment"')):
            execute_elsewhere(pending.pop())
        return execute(statement, *arguments)

    with connection.execute_wrapper(run_first):
        yield
    assert not pending


def accesses_of(**changes: Any) -> set[Access]:
    """Return the organizations and modes of the payments with these values."""
    return set(map(Access._make, Payment.objects.filter(**changes).values_list("organization_id", "mode")))


def new_payment(**changes: Any) -> Payment:
    values = {
        "status": Status.OPEN,
        "sequence_type": SequenceType.ONEOFF,
        "created_at": NOON,
        "method": "new",
        **changes,
    }
    return Payment(
        id="pt_new", organization=Organization(id=1001), mode="live", amount=1, amount_currency="EUR", **values
    )


def test_payment_that_matches_only_later_is_not_updated() -> None:
    def update() -> None:
        with before_write("UPDATE payments_payment SET description = '1' WHERE id = 'pt_2'"):
            Payment.objects.filter(description="1").update(method="new")

    assert renewed_by(update) == accesses_of(method="new") == {LIVE}


def test_payment_that_leaves_its_mode_before_the_update_is_not_updated() -> None:
    def update() -> None:
        with before_write("UPDATE payments_payment SET mode = 'test' WHERE id = 'pt_1'"):
            Payment.objects.filter(id="pt_1").update(method="new")

    assert accesses_of(method="new") <= renewed_by(update)


@pytest.mark.parametrize("lookup", [{"id": "pt_1"}, {"organization__name__endswith": "1"}])
def test_payment_that_leaves_its_mode_during_the_update_is_not_updated(lookup: dict[str, str]) -> None:
    updating = in_thread(lambda: Payment.objects.filter(**lookup).update(method="new"))

    def update() -> None:
        with closing(connection.copy()) as other, other.cursor() as cursor:
            other.set_autocommit(False)
            cursor.execute("UPDATE payments_payment SET mode = 'test' WHERE id = 'pt_1'")
            updating.start()
            wait_until_blocked(updating)
            other.commit()
            updating.join()

    renewed = renewed_by(update)
    assert accesses_of(method="new") <= renewed
    assert TEST not in renewed


def test_saved_payment_that_another_organization_inserts_meanwhile_stays() -> None:
    def save() -> None:
        with before_write(INSERT_OTHER), suppress(IntegrityError):
            new_payment().save_base(raw=True)  # as loaddata: first UPDATE, then INSERT

    assert accesses_of(method="new") == renewed_by(save) == set()
    assert accesses_of(id="pt_new") == {OTHER_LIVE}


@pytest.mark.parametrize(
    "second_write",
    [
        lambda: Payment.objects.filter(id="pt_1").update(method="new"),
        lambda: PaymentFactory.create(id="pt_new", organization=Organization(id=1001)),
    ],
    ids=["of the same payment", "of a new payment"],
)
def test_second_change_waits_for_the_first(second_write: Callable[[], object]) -> None:
    """Otherwise a reader could see the revision of the second change without the first one."""
    writing = in_thread(second_write)

    with transaction.atomic():
        Payment.objects.filter(id="pt_1").update(description="changed")
        writing.start()
        wait_until_blocked(writing)
    writing.join()


@pytest.mark.parametrize(
    "organizations", [[1001, 1001, 1001], [1001, 1002, 1003]], ids=["one access", "three accesses"]
)
def test_updates_in_opposite_order_both_succeed(monkeypatch: pytest.MonkeyPatch, organizations: list[int]) -> None:
    """Another transaction holds the second of three payments, so that each update has written its first one."""
    monkeypatch.setattr("payments.models.recording.CHANGE_PAYMENTS_MAX", 1)
    OrganizationFactory.create(id=1003)
    for number, organization in enumerate(organizations):
        PaymentFactory.create(id=f"pt_x{number}", organization=Organization(id=organization), method="old")
    payments = Payment.objects.filter(method="old")
    updates = [partial(payments.order_by(order).update, description=order) for order in ("id", "-id")]

    updated = call_while_held(lambda: Payment.objects.filter(id="pt_x1").update(description="held"), *updates)

    assert updated == [3, 3]
    assert len(set(payments.values_list("description"))) == 1
