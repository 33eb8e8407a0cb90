"""Daily totals agree with the stored payments, even after imports."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from payments.demo import SHOPS
from payments.ingest import import_payments
from payments.models import Access, ApiKey, DayKind, Organization, Payment, SummedDay
from payments.models.days import days_between
from payments.totals.daily import (
    Calendar,
    DailyTotals,
    daily_totals,
    split_consecutive,
    sum_days,
    sum_missing_days,
)
from payments.totals.figures import Figures, Total, figures_by_currency, figures_of
from tests.support.factories import ApiKeyFactory, OrganizationFactory
from tests.support.lines import MISSING, line, source
from tests.support.sql import execute
from tests.support.threads import in_thread, wait_until_blocked
from tests.support.waiting import SECONDS_MAX

pytestmark = pytest.mark.also("citus")

FIRST = date(2026, 1, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(3)]


def created(access: Access) -> Calendar:
    return Calendar(access, DayKind.CREATED, "UTC")


def total(currency: str, status: str, method: str, payments: int, amount: int) -> Total:
    """Return a total without known net and remaining amounts."""
    return Total(currency, status, method, payments, amount, 0, 0, 0, 0, 0)


def load(*lines: bytes) -> None:
    import_payments([source(b"\n".join(lines))], on_refused=lambda location, error: pytest.fail(f"{location}: {error}"))


def payment_line(number: int, day: date, *, cents: int = 1000, time: str = "12:00:00.000", **changes: object) -> bytes:
    amount = {"value": f"{Decimal(cents).scaleb(-2)}", "currency": changes.pop("currency", "EUR")}
    changes = {"amountNet": MISSING, "amountRemaining": MISSING, **changes}
    return line(id=f"pt_{number}", createdAt=f"{day}T{time}", amount=amount, **changes)


def get_totals(key: ApiKey) -> dict[date, list[Total]]:
    sum_missing_days(created(key.access), days=DAYS)
    totals = daily_totals(created(key.access), days=DAYS)
    assert totals.missing == []
    return dict(totals.by_day)


def expected_totals(key: ApiKey, days: Sequence[date] = DAYS) -> dict[date, list[Total]]:
    """Add the stored payments in Python."""
    groups: dict[tuple[date, str, str, str], list[Decimal]] = defaultdict(list)
    for payment in Payment.objects.visible_to(key.access):
        day_and_group = payment.created_at.date(), payment.amount_currency, payment.status, payment.method
        groups[day_and_group].append(payment.amount)
    by_day: dict[date, list[Total]] = {day: [] for day in days}
    for (day, *group), amounts in sorted(groups.items()):
        by_day[day].append(total(group[0], group[1], group[2], len(amounts), int(sum(amounts) * 100)))
    return by_day


def test_totals_are_grouped_by_currency_status_and_method(key: ApiKey) -> None:
    load(
        payment_line(1, DAYS[0], time="00:00:00.000"),
        payment_line(2, DAYS[0], time="23:59:59.999", cents=1),
        payment_line(3, DAYS[0], status="failed"),
        payment_line(4, DAYS[0], currency="USD"),
        payment_line(5, DAYS[2], method="ideal", cents=-250),
        payment_line(6, DAYS[0], mode="test"),
        payment_line(7, DAYS[0] - timedelta(days=1), time="23:59:59.999"),
    )

    assert get_totals(key) == {
        DAYS[0]: [
            total("EUR", "failed", "creditcard", 1, 1000),
            total("EUR", "succeeded", "creditcard", 2, 1001),
            total("USD", "succeeded", "creditcard", 1, 1000),
        ],
        DAYS[1]: [],
        DAYS[2]: [total("EUR", "succeeded", "ideal", 1, -250)],
    }


@pytest.mark.only("postgresql")
def test_order_of_totals_does_not_depend_on_the_plan(key: ApiKey) -> None:
    execute("SET LOCAL enable_sort = off")  # PostgreSQL groups by a hash
    methods = ("paypal", "ideal", "creditcard", "banktransfer", "klarna")
    load(*(payment_line(number, DAYS[0], method=method) for number, method in enumerate(methods)))

    assert [total.method for total in get_totals(key)[DAYS[0]]] == sorted(methods)


def test_largest_amounts_are_added_exactly(key: ApiKey) -> None:
    load(*(payment_line(number, DAYS[0], cents=999_999_999_999_999) for number in range(3)))

    assert get_totals(key)[DAYS[0]] == [total("EUR", "succeeded", "creditcard", 3, 3 * 999_999_999_999_999)]


def test_stored_totals_are_not_computed_again(key: ApiKey) -> None:
    load(payment_line(1, DAYS[0]))
    before = get_totals(key)

    with CaptureQueriesContext(connection) as queries:
        after = get_totals(key)

    assert after == before
    assert len(queries) == 2
    assert not [query for query in queries if "payments_payment" in query["sql"]]


def test_import_deletes_only_the_totals_of_days_that_it_changes(key: ApiKey) -> None:
    load(
        payment_line(1, DAYS[0]),
        payment_line(2, DAYS[1], status="open", paidAt="2026-01-02T12:00:00.000"),
        payment_line(3, DAYS[2]),
    )
    get_totals(key)

    load(payment_line(1, DAYS[0]), payment_line(2, DAYS[1]))
    days_with_totals = set(SummedDay.objects.values_list("day", flat=True))

    # The first payment did not change, but the second one of the same batch did.
    assert days_with_totals == {DAYS[2]}
    assert get_totals(key) == {
        DAYS[0]: [total("EUR", "succeeded", "creditcard", 1, 1000)],
        DAYS[1]: [total("EUR", "succeeded", "creditcard", 1, 1000)],
        DAYS[2]: [total("EUR", "succeeded", "creditcard", 1, 1000)],
    }


def test_import_keeps_totals_of_a_mode_that_it_does_not_change(key: ApiKey) -> None:
    """It has not locked their state: another process may be summing the day."""
    load(payment_line(1, FIRST), payment_line(2, FIRST, mode="test"))
    for mode in ("live", "test"):
        sum_days(created(Access(key.organization_id, mode)), [FIRST])

    load(payment_line(1, FIRST), payment_line(2, FIRST, mode="test", cents=1))

    assert list(SummedDay.objects.values_list("mode", flat=True)) == ["live"]


def test_days_that_another_process_has_summed_are_kept(key: ApiKey) -> None:
    load(payment_line(1, DAYS[0]), payment_line(2, DAYS[1]))
    sum_days(created(key.access), DAYS[:1])

    assert sum_days(created(key.access), DAYS) == 2

    assert get_totals(key) == expected_totals(key)


def test_totals_belong_to_one_organization_and_mode(key: ApiKey) -> None:
    accesses = [
        Access(key.organization_id, "live"),
        Access(key.organization_id, "test"),
        Access(OrganizationFactory.create(id=2).id, "live"),
    ]
    for number, access in enumerate(accesses):
        load(payment_line(number, FIRST, cents=number, mode=access.mode, organizationId=str(access.organization_id)))
        sum_days(created(access), [FIRST])

    load(payment_line(3, FIRST, cents=50))

    assert [daily_totals(created(access), days=[FIRST]) for access in accesses] == [
        DailyTotals({}, [FIRST]),
        DailyTotals({FIRST: [total("EUR", "succeeded", "creditcard", 1, 1)]}, []),
        DailyTotals({FIRST: [total("EUR", "succeeded", "creditcard", 1, 2)]}, []),
    ]


def test_totals_are_those_of_the_requested_days(key: ApiKey) -> None:
    get_totals(key)

    assert daily_totals(created(key.access), days=DAYS[1:2]) == DailyTotals({DAYS[1]: []}, [])


def test_import_without_changes_keeps_totals(key: ApiKey) -> None:
    load(payment_line(1, DAYS[0]))
    get_totals(key)

    load(payment_line(1, DAYS[0]))

    assert SummedDay.objects.count() == len(DAYS)


def test_days_without_totals_are_returned_as_missing(key: ApiKey) -> None:
    load(payment_line(1, DAYS[0]), payment_line(2, DAYS[1]), payment_line(3, DAYS[2]))
    has_time = iter([True, False])

    sum_missing_days(created(key.access), days=DAYS, has_time=lambda: next(has_time))

    assert daily_totals(created(key.access), days=DAYS) == DailyTotals(
        {DAYS[0]: [total("EUR", "succeeded", "creditcard", 1, 1000)]}, DAYS[1:]
    )


def test_days_that_are_summed_together_have_their_own_totals(key: ApiKey) -> None:
    days = [FIRST + timedelta(days=number) for number in range(20)]
    times = ("00:00:00.000", "23:59:59.999")
    load(*(payment_line(number, days[number * 7 % 20], time=times[number % 2], cents=number) for number in range(40)))
    sum_days(created(key.access), [days[9]])

    with CaptureQueriesContext(connection) as queries:
        sum_missing_days(created(key.access), days=days)

    totals = daily_totals(created(key.access), days=days)
    expected = expected_totals(key, days=days)
    assert (totals.by_day, totals.missing) == (expected, [])
    assert sum('FROM "payments_payment"' in query["sql"] for query in queries) < 10


@pytest.mark.parametrize(
    ("numbers", "count", "expected"),
    [
        ([0], 1, ([0], [])),
        ([0, 1, 2], 1, ([0], [1, 2])),
        ([0, 1, 2], 2, ([0, 1], [2])),
        ([0, 1, 2], 9, ([0, 1, 2], [])),
        ([0, 2, 3], 2, ([0], [2, 3])),
        ([5, 0, 1], 3, ([5], [0, 1])),
    ],
)
def test_consecutive_days_are_split_off(numbers: list[int], count: int, expected: tuple[list[int], list[int]]) -> None:
    days = [FIRST + timedelta(days=number) for number in numbers]

    parts = split_consecutive(days, count)

    assert tuple([(day - FIRST).days for day in part] for part in parts) == expected


def test_days_with_many_payments_are_summed_alone(key: ApiKey) -> None:
    days = [FIRST + timedelta(days=number) for number in range(12)]
    load(*(payment_line(number, days[number // 3]) for number in range(36)))

    with CaptureQueriesContext(connection) as queries:
        sum_missing_days(created(key.access), days=days, has_time=lambda: True, payments_max=5)

    assert sum('FROM "payments_payment"' in query["sql"] for query in queries) == 12


@pytest.mark.once
def test_new_demo_payments_are_included_in_totals(organization: Organization) -> None:
    def create_demo_payments(count: int) -> None:
        call_command("create_demo_payments", count=count, until=datetime(2026, 1, 4, tzinfo=UTC), verbosity=0)

    create_demo_payments(20)
    shop = Access(SHOPS[0].id, "live")
    days = [date(2026, 1, 3) - timedelta(days=number) for number in range(365)]
    sum_missing_days(created(shop), days=days)

    create_demo_payments(200)
    sum_missing_days(created(shop), days=days)

    totals = daily_totals(created(shop), days=days).by_day.values()
    assert sum(total.payments for day in totals for total in day) == Payment.objects.visible_to(shop).count()


@pytest.mark.only("postgresql", "citus")  # SQLite has one writer at a time
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("earlier_payments", [0, 1], ids=["first import", "later import"])
def test_import_that_ends_while_its_day_is_summed_is_included(key: ApiKey, earlier_payments: int) -> None:
    load(*(payment_line(1, DAYS[0]) for _ in range(earlier_payments)))  # creates the row that is locked
    importing = in_thread(lambda: load(payment_line(2, DAYS[0])))

    with transaction.atomic():
        sum_days(created(key.access), [DAYS[0]])
        importing.start()
        wait_until_blocked(importing)
    importing.join()

    assert Payment.objects.count() == earlier_payments + 1
    assert get_totals(key) == expected_totals(key)


@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_day_that_is_summed_while_an_import_ends_includes_all_of_it(key: ApiKey) -> None:
    results: list[dict[date, list[Total]]] = []
    summing = in_thread(lambda: results.append(get_totals(key)))

    with transaction.atomic():
        load(payment_line(1, DAYS[0]))
        summing.start()
        wait_until_blocked(summing)
    summing.join()

    assert results == [expected_totals(key)]
    assert get_totals(key) == expected_totals(key)


@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_key_can_be_created_while_a_day_is_summed(key: ApiKey) -> None:
    creating = in_thread(lambda: ApiKeyFactory.create(organization=key.organization))

    with transaction.atomic():
        sum_days(created(key.access), [DAYS[0]])
        creating.start()
        creating.join(timeout=SECONDS_MAX)
        is_waiting = creating.is_alive()
    creating.join()

    assert not is_waiting


@pytest.mark.parametrize(
    ("zone", "created_day"), [("UTC", 30), ("Europe/Amsterdam", 31), ("Asia/Kathmandu", 31), ("America/New_York", 30)]
)
def test_payment_counts_on_its_days_of_the_time_zone(key: ApiKey, zone: str, created_day: int) -> None:
    """A bank transfer is created on 30 October at 23:30 UTC, and paid on 5 November."""
    load(
        payment_line(1, date(2026, 10, 30), time="23:30:00.000", cents=77_700, paidAt="2026-11-05T08:00:00.000"),
        payment_line(2, date(2026, 10, 15), cents=10_000, paidAt="2026-10-15T12:01:00.000"),
        payment_line(3, date(2026, 10, 20), cents=900_000, status="failed", paidAt=MISSING),
    )
    days = days_between(date(2026, 10, 1), date(2026, 11, 30))

    paid_on: dict[DayKind, dict[str, int]] = {}
    for kind in DayKind:
        calendar = Calendar(key.access, kind, zone)
        sum_missing_days(calendar, days=days)
        by_day = daily_totals(calendar, days=days).by_day
        figures = {day: figures_of("EUR", totals).paid for day, totals in by_day.items()}
        paid_on[kind] = {f"{day}": paid for day, paid in figures.items() if paid}

    assert paid_on[DayKind.PAID] == {"2026-10-15": 10_000, "2026-11-05": 77_700}
    assert paid_on[DayKind.CREATED] == {"2026-10-15": 10_000, f"2026-10-{created_day}": 77_700}


def test_net_and_remaining_amounts_in_another_currency_are_unknown(key: ApiKey) -> None:
    def euros(value: str) -> dict[str, str]:
        return {"value": value, "currency": "EUR"}

    load(
        payment_line(1, FIRST, amountNet=euros("9.55"), amountRemaining=euros("2.00")),
        payment_line(2, FIRST, amountNet={"value": "9.55", "currency": "USD"}, amountRemaining=euros("10.00")),
        payment_line(3, FIRST, amountRemaining={"value": "1.00", "currency": "USD"}),
        payment_line(4, FIRST, status="failed", amountNet=euros("1.00")),
    )

    [figures] = figures_by_currency(get_totals(key)[FIRST])

    expected = Figures("EUR", payments=4, succeeded=3, paid=3000, refunded=800, fees=45, net=955)
    assert figures == expected._replace(net_known=1, remaining_known=2)


def test_totals_of_another_time_zone_are_computed_again(key: ApiKey) -> None:
    load(payment_line(1, FIRST, time="23:30:00.000"))
    before = get_totals(key)
    amsterdam = Calendar(key.access, DayKind.CREATED, "Europe/Amsterdam")

    sum_missing_days(amsterdam, days=DAYS)

    after = daily_totals(amsterdam, days=DAYS).by_day
    assert (before[FIRST], before[DAYS[1]]) == (after[DAYS[1]], after[FIRST])
    assert daily_totals(created(key.access), days=DAYS).missing == DAYS


def test_former_time_zone_has_no_stale_totals(key: ApiKey) -> None:
    def move(zone: str) -> Calendar:
        Organization.objects.filter(id=key.organization_id).update(time_zone=zone)
        return Calendar(key.access, DayKind.CREATED, zone)

    days = [date(2025, 12, 31), *DAYS]
    sum_missing_days(move("Asia/Tokyo"), days=days)
    move("America/New_York")
    load(payment_line(1, FIRST, time="20:00:00.000"))
    tokyo = move("Asia/Tokyo")

    sum_missing_days(tokyo, days=days)

    by_day = daily_totals(tokyo, days=days).by_day
    assert {f"{day}": len(totals) for day, totals in by_day.items() if totals} == {"2026-01-02": 1}
