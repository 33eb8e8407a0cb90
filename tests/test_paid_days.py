"""Pages within few paid days are those that a search of all payments finds, from any start and in both directions."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from operator import ge, gt, le, lt
from random import Random
from typing import TypeAlias

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from payments.api.parameters import parse_list_parameters
from payments.listing.paid_days import paid_days
from payments.models import Access, Mode, Organization, Payment
from payments.record import record_time
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.lists import ListPage, read_page
from tests.support.scale import SEED, times
from tests.support.sql import rolled_back, update_statistics

pytestmark = pytest.mark.django_db

ACCESS = Access(1, Mode.LIVE)
PAYMENTS = 1500
TIE = range(600, 800)  # created at the same time
HOUR = timedelta(hours=1)
Condition: TypeAlias = Callable[[Payment], bool]


# Other filters, and the same conditions in Python.
FILTERS: list[tuple[dict[str, str], Condition]] = [
    ({}, lambda _: True),
    ({"status": "failed,succeeded"}, lambda _: True),
    ({"status": "failed"}, lambda payment: payment.status == "failed"),
    ({"method": "ideal"}, lambda payment: payment.method == "ideal"),
    ({"method": "rare"}, lambda payment: payment.method == "rare"),
    ({"currency": "USD", "amount[gte]": "10"}, lambda payment: payment.amount_currency == "USD"),
    ({"customerId": "ct_1"}, lambda payment: payment.customer_id == "ct_1"),
    ({"createdAt[gte]": record_time(NOON + 200 * HOUR)}, lambda payment: payment.created_at >= NOON + 200 * HOUR),
]


def build_payment(number: int, organization: Organization, chance: Random) -> Payment:
    """Return a payment that is paid at once or later. Some failed payments have been paid too."""
    created_at = NOON + HOUR * ((TIE.start if number in TIE else number) // 2)
    delay = chance.choice([0, 0, 0, 0, 1, 9, 40, 400, None])
    return PaymentFactory.build(
        id=f"pt_{chance.randrange(10**9)}x{number}",
        organization=organization,
        created_at=created_at,
        paid_at=None if delay is None else created_at + HOUR * delay,
        status="failed" if delay in {None, 9} else "succeeded",
        method="rare" if number % 200 == 0 else chance.choice(["creditcard", "ideal"]),
        amount=10,
        amount_currency=chance.choice(["EUR", "EUR", "USD"]),
        customer_id=f"ct_{number % 3}",
    )


@pytest.fixture(scope="module")
def payments(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[list[Payment]]:
    """Store payments of two organizations, and return those of the first in the order of the list."""
    chance = Random(SEED)  # noqa: S311
    with rolled_back(django_db_blocker):
        own, other = OrganizationFactory.create(id=1), OrganizationFactory.create(id=2)
        stored = [build_payment(number, own, chance) for number in range(PAYMENTS)]
        Payment.objects.bulk_create([*stored, *(build_payment(number, other, chance) for number in range(1, 1500, 50))])
        update_statistics()
        yield sorted(stored, key=lambda payment: (payment.created_at, payment.id), reverse=True)


def expected_page(listed: list[str], matching: set[str], start: str | None, *, limit: int) -> ListPage:
    """Return a page of matching IDs, which begins at or after the ID `start` of the list."""
    position = listed.index(start) if start else 0
    before = [payment_id for payment_id in listed[:position] if payment_id in matching]
    after = [payment_id for payment_id in listed[position:] if payment_id in matching]
    return ListPage(after[:limit], before[-limit:][0] if before else None, after[limit] if after[limit:] else None)


def paid_within(first: datetime, last: datetime, *, is_open: bool) -> Condition:
    """Return the condition that a payment is paid between two times; `is_open`: after the first or at the last."""
    is_after, is_before = (gt, le) if is_open else (ge, lt)
    return lambda payment: (
        payment.paid_at is not None and is_after(payment.paid_at, first) and is_before(payment.paid_at, last)
    )


@pytest.mark.parametrize(("other", "is_other"), FILTERS, ids=lambda value: "" if callable(value) else str(value))
def test_pages_of_paid_days_are_those_of_a_search(
    payments: list[Payment], other: dict[str, str], is_other: Condition
) -> None:
    chance = Random(SEED)  # noqa: S311
    for _ in range(times(12, long=2000)):
        is_open, is_ascending = chance.random() < 0.5, chance.random() < 0.5
        first = NOON + chance.choice([HOUR, HOUR * 24]) * chance.randrange(30)
        last = first + HOUR * chance.choice([0, 12, 12, 36, 168, 31 * 24, 32 * 24 + 2])
        bounds = ("paidAt[gt]", "paidAt[lte]") if is_open else ("paidAt[gte]", "paidAt[lt]")
        query = {**dict(zip(bounds, map(record_time, (first, last)), strict=True)), **other, "limit": 20}
        listed = payments[::-1] if is_ascending else payments
        is_paid = paid_within(first, last, is_open=is_open)
        matching = {payment.id for payment in payments if is_paid(payment) and is_other(payment)}
        start = chance.choice([None, None, listed[0].id, chance.choice(listed).id])
        for _ in range(2):
            page = read_page(ACCESS, {**query, "sort": "asc" if is_ascending else "desc", "from": start})

            assert page == expected_page([payment.id for payment in listed], matching, start, limit=20), query
            start = chance.choice([page.next, page.previous]) or start


@pytest.mark.parametrize(
    ("bounds", "is_found"), [(("gte", "lt"), False), (("gte", "lte"), True), (("gt", "lte"), True)]
)
def test_midnight_belongs_to_the_day_that_it_begins(bounds: tuple[str, str], is_found: bool) -> None:
    other = Access(OrganizationFactory.create(id=3).pk, Mode.LIVE)
    midnight = NOON + 12 * HOUR
    PaymentFactory.create(id="pt_1", organization_id=3, created_at=NOON, paid_at=midnight)
    times_by_bound = zip(bounds, (midnight - 24 * HOUR, midnight), strict=True)

    page = read_page(other, {f"paidAt[{bound}]": record_time(time) for bound, time in times_by_bound})

    assert page.ids == ["pt_1"] * is_found


@pytest.mark.only("citus")
@pytest.mark.django_db(transaction=True)
def test_first_list_of_a_thread_knows_that_the_database_is_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    filters = parse_list_parameters("paidAt[gte]=2026-01-01&paidAt[lt]=2026-01-02").selection.filters
    connection.close()
    monkeypatch.setattr(connection, "uses_citus", None)

    assert paid_days(filters) is None
