"""Daily totals are those of the payments that are stored, whenever an import changes them."""

import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from payments.demo import SHOPS
from payments.ingest import import_payments
from payments.models import Access, ApiKey, Organization, Payment, SummedDay
from payments.totals import DailyTotals, Total, daily_totals, sum_day, sum_missing
from tests.support.factories import ApiKeyFactory, OrganizationFactory
from tests.support.lines import line, source

FIRST = date(2026, 1, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(3)]


def load(*lines: bytes) -> None:
    import_payments([source(b"\n".join(lines))], on_refused=lambda place, error: pytest.fail(f"{place}: {error}"))


def payment(number: int, day: date, *, cents: int = 1000, time: str = "12:00:00.000", **changes: object) -> bytes:
    amount = {"value": f"{Decimal(cents).scaleb(-2)}", "currency": changes.pop("currency", "EUR")}
    return line(id=f"pt_{number}", createdAt=f"{day}T{time}", amount=amount, **changes)


def totals_of(key: ApiKey) -> dict[date, list[Total]]:
    sum_missing(key.access, days=DAYS, has_time=lambda: True)
    totals = daily_totals(key.access, days=DAYS)
    assert totals.missing == []
    return dict(totals.of_day)


def counted(key: ApiKey) -> dict[date, list[Total]]:
    """Return the same from the payments themselves, one by one."""
    kinds: dict[tuple[date, str, str, str], list[Decimal]] = defaultdict(list)
    for each in Payment.objects.visible_to(key.access):
        amount = each.amount
        kinds[each.created_at.date(), amount.currency.code, each.status, each.method].append(amount.amount)
    by_day: dict[date, list[Total]] = {day: [] for day in DAYS}
    for (day, *kind), amounts in sorted(kinds.items()):
        by_day[day].append(Total._make((*kind, len(amounts), int(sum(amounts) * 100))))
    return by_day


def test_each_day_has_its_totals_by_currency_status_and_method(key: ApiKey) -> None:
    load(
        payment(1, DAYS[0], time="00:00:00.000"),
        payment(2, DAYS[0], time="23:59:59.999", cents=1),
        payment(3, DAYS[0], status="failed"),
        payment(4, DAYS[0], currency="USD"),
        payment(5, DAYS[2], method="ideal", cents=-250),
        payment(6, DAYS[0], mode="test"),
        payment(7, DAYS[0] - timedelta(days=1), time="23:59:59.999"),
    )

    assert totals_of(key) == {
        DAYS[0]: [
            Total("EUR", "failed", "creditcard", 1, 1000),
            Total("EUR", "succeeded", "creditcard", 2, 1001),
            Total("USD", "succeeded", "creditcard", 1, 1000),
        ],
        DAYS[1]: [],
        DAYS[2]: [Total("EUR", "succeeded", "ideal", 1, -250)],
    }


def test_the_largest_amounts_are_added_to_the_hundredth(key: ApiKey) -> None:
    load(*(payment(number, DAYS[0], cents=999_999_999_999_999) for number in range(3)))

    assert totals_of(key)[DAYS[0]] == [Total("EUR", "succeeded", "creditcard", 3, 3 * 999_999_999_999_999)]


def test_what_is_summed_is_not_summed_again(key: ApiKey) -> None:
    load(payment(1, DAYS[0]))
    before = totals_of(key)

    with CaptureQueriesContext(connection) as queries:
        after = totals_of(key)

    assert after == before
    assert len(queries) == 2
    assert not [query for query in queries if "payments_payment" in query["sql"]]


def test_an_import_has_the_days_summed_again_that_it_changes_and_no_others(key: ApiKey) -> None:
    load(payment(1, DAYS[0]), payment(2, DAYS[1], status="open", paidAt="2026-01-02T12:00:00.000"), payment(3, DAYS[2]))
    totals_of(key)

    load(payment(1, DAYS[0]), payment(2, DAYS[1]))
    kept = set(SummedDay.objects.values_list("day", flat=True))

    # The batch of the one that did not change has another that did.
    assert kept == {DAYS[2]}
    assert totals_of(key) == {
        DAYS[0]: [Total("EUR", "succeeded", "creditcard", 1, 1000)],
        DAYS[1]: [Total("EUR", "succeeded", "creditcard", 1, 1000)],
        DAYS[2]: [Total("EUR", "succeeded", "creditcard", 1, 1000)],
    }


def test_totals_of_organizations_and_modes_stay_apart(key: ApiKey) -> None:
    scopes = [
        Access(key.organization_id, "live"),
        Access(key.organization_id, "test"),
        Access(OrganizationFactory.create(id=2).id, "live"),
    ]
    for number, scope in enumerate(scopes):
        load(payment(number, FIRST, cents=number, mode=scope.mode, organizationId=str(scope.organization_id)))
        sum_day(scope, FIRST)

    load(payment(3, FIRST, cents=50))

    assert [daily_totals(scope, days=[FIRST]) for scope in scopes] == [
        DailyTotals({}, [FIRST]),
        DailyTotals({FIRST: [Total("EUR", "succeeded", "creditcard", 1, 1)]}, []),
        DailyTotals({FIRST: [Total("EUR", "succeeded", "creditcard", 1, 2)]}, []),
    ]


def test_totals_are_those_of_the_requested_days(key: ApiKey) -> None:
    totals_of(key)

    assert daily_totals(key.access, days=DAYS[1:2]) == DailyTotals({DAYS[1]: []}, [])


def test_an_import_that_changes_nothing_forgets_nothing(key: ApiKey) -> None:
    load(payment(1, DAYS[0]))
    totals_of(key)

    load(payment(1, DAYS[0]))

    assert SummedDay.objects.count() == len(DAYS)


def test_without_time_the_days_that_are_not_summed_are_named(key: ApiKey) -> None:
    load(payment(1, DAYS[0]), payment(2, DAYS[1]), payment(3, DAYS[2]))
    moments = iter([True, False])

    sum_missing(key.access, days=DAYS, has_time=lambda: next(moments))

    assert daily_totals(key.access, days=DAYS) == DailyTotals(
        {DAYS[0]: [Total("EUR", "succeeded", "creditcard", 1, 1000)]}, DAYS[1:]
    )


def test_more_demo_payments_have_their_days_summed_again(organization: Organization) -> None:
    def demo(count: int) -> None:
        call_command("create_demo_payments", count=count, until=datetime(2026, 1, 4, tzinfo=UTC), verbosity=0)

    demo(20)
    shop = Access(SHOPS[0].id, "live")
    days = [date(2026, 1, 3) - timedelta(days=number) for number in range(365)]
    sum_missing(shop, days=days, has_time=lambda: True)

    demo(200)
    sum_missing(shop, days=days, has_time=lambda: True)

    counted = Payment.objects.visible_to(shop).count()
    assert sum(total.number for day in daily_totals(shop, days=days).of_day.values() for total in day) == counted


@pytest.mark.django_db(transaction=True)
def test_an_import_that_ends_while_its_day_is_summed_is_not_overlooked(key: ApiKey) -> None:
    load(payment(1, DAYS[0]))
    importing = beside(lambda: load(payment(2, DAYS[0])))

    with transaction.atomic():
        sum_day(key.access, DAYS[0])
        importing.start()
        importing.join(timeout=0.5)
    importing.join()

    assert Payment.objects.count() == 2
    assert totals_of(key) == counted(key)


@pytest.mark.django_db(transaction=True)
def test_a_day_that_is_summed_while_an_import_of_it_ends_has_all_of_it(key: ApiKey) -> None:
    found: list[dict[date, list[Total]]] = []
    summing = beside(lambda: found.append(totals_of(key)))

    with transaction.atomic():
        load(payment(1, DAYS[0]))
        summing.start()
        summing.join(timeout=0.5)
    summing.join()

    assert found == [counted(key)]
    assert totals_of(key) == counted(key)


@pytest.mark.django_db(transaction=True)
def test_a_key_can_be_made_while_a_day_is_summed(key: ApiKey) -> None:
    making = beside(lambda: ApiKeyFactory.create(organization=key.organization))

    with transaction.atomic():
        sum_day(key.access, DAYS[0])
        making.start()
        making.join(timeout=20)
        waited = making.is_alive()
    making.join()

    assert not waited


def beside(work: Callable[[], object]) -> threading.Thread:
    """Return a thread that does some work on a connection of its own."""

    def done() -> None:
        with closing(connection):
            work()

    return threading.Thread(target=done)
