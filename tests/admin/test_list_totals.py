"""The totals above the payment list agree with totals that are added in Python.

The payments stay in the database for the whole module. Add no tests here that store payments.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from operator import add
from typing import Any

import pytest
from django.http import QueryDict
from pytest_django import DjangoDbBlocker, Settings

from payments.admin.payments.form import SearchForm
from payments.admin.payments.list import fetch_list
from payments.admin.payments.totals import ListTotals
from payments.admin.scope import EVERYTHING
from payments.models import Mode, Organization, Payment, Status, SummedDay
from payments.totals.figures import Figures
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.list_errors import failing_statements, timeout_error
from tests.support.sql import rolled_back

pytestmark = [pytest.mark.django_db, pytest.mark.also("citus")]

DAYS = [NOON.date() + timedelta(days=number) for number in range(5)]
DAY_PAYMENTS = 210
COUNTED_MAX = 1000

# Net and remaining amounts: known, in another currency, or absent.
KNOWN: list[dict[str, Any]] = [
    {"amount_net": Decimal("0.07"), "amount_net_currency": "EUR"},
    {"amount_remaining": Decimal("-0.11"), "amount_remaining_currency": "USD"},
    {"amount_net": Decimal("1.01"), "amount_net_currency": "CHF"},
    {},
]


@pytest.fixture(scope="module", autouse=True)
def organization(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Organization]:
    with rolled_back(django_db_blocker):
        own, foreign = OrganizationFactory.create(id=1), OrganizationFactory.create(id=2)
        numbers = range(len(DAYS) * DAY_PAYMENTS)
        Payment.objects.bulk_create(build_payment(number, own) for number in numbers)
        Payment.objects.bulk_create(build_payment(number, foreign) for number in numbers[::10])
        yield own


@pytest.fixture(autouse=True)
def counts_few_payments(settings: Settings) -> None:
    settings.PAYMENTS_SUMMED_PAYMENTS_MAX = COUNTED_MAX


def build_payment(number: int, organization: Organization) -> Payment:
    return PaymentFactory.build(
        id=f"pt_{organization.pk}{number:05}",
        organization=organization,
        created_at=NOON + timedelta(days=number // DAY_PAYMENTS, seconds=number % DAY_PAYMENTS),
        amount=Decimal(number % 997 - 20).scaleb(-2),
        amount_currency=("EUR", "EUR", "USD")[number % 3],
        status=list(Status)[number % 11 % len(Status)],
        method=("creditcard", "ideal", "paypal")[number % 5 % 3],
        description=f"Order {number}",
        metadata="{}",
        paid_at=NOON + timedelta(days=(number // DAY_PAYMENTS + number % 3) % 5, minutes=number % 7),
        **KNOWN[number % 4],
        mode=Mode.TEST if number % 50 == 49 else Mode.LIVE,
    )


def totals(**parameters: Any) -> ListTotals:
    query = QueryDict(mutable=True)
    for name, value in {"organization": "1", **parameters}.items():
        query.setlist(name, value if isinstance(value, list) else [value])
    form = SearchForm.from_query(query, scope=EVERYTHING)
    assert form.is_valid(), form.errors
    result = fetch_list(form, start=None).totals
    assert result is not None
    return result


def expected(**conditions: Any) -> tuple[int, dict[str, int], dict[str, Figures]]:
    """Count the payments in Python, count the statuses other than succeeded, and add the money of each currency."""
    payments = Payment.objects.filter(**{"organization_id": 1, "mode": "live", **conditions})
    statuses = Counter(payment.status for payment in payments if payment.status != Status.SUCCEEDED)
    money: dict[str, Figures] = {}
    for payment in payments:
        figures = money.get(payment.amount_currency, Figures(payment.amount_currency))
        money[payment.amount_currency] = Figures(figures.currency, *map(add, figures[1:], figures_of_one(payment)))
    return len(payments), statuses, {currency: figures for currency, figures in money.items() if figures.succeeded}


def figures_of_one(payment: Payment) -> list[int]:
    """Return the figures of a payment, without the currency."""
    if payment.status != Status.SUCCEEDED:
        return [1, 0, 0, 0, 0, 0, 0, 0]
    amount, net, remaining = (
        None if value is None or currency != payment.amount_currency else int(Decimal(str(value)) * 100)
        for value, currency in (
            (payment.amount, payment.amount_currency),
            (payment.amount_net, payment.amount_net_currency),
            (payment.amount_remaining, payment.amount_remaining_currency),
        )
    )
    assert amount is not None
    refunded, fees = (0 if part is None else amount - part for part in (remaining, net))
    return [1, 1, amount, refunded, fees, net or 0, net is not None, remaining is not None]


def summary(result: ListTotals) -> tuple[int, dict[str, int], dict[str, Figures]]:
    assert result.totals is not None
    return result.payments, result.other_statuses, {figures.currency: figures for figures in result.figures}


@pytest.mark.parametrize(
    ("parameters", "conditions"),
    [
        ({"status": ["failed"]}, {"status": "failed"}),
        ({"status": ["open", "pending"]}, {"status__in": ["open", "pending"]}),
        ({"mode": "test"}, {"mode": "test"}),
        ({"organization": "2"}, {"organization_id": 2}),
        ({"method": "ideal"}, {"method": "ideal"}),
        ({"currency": "USD", "amount_min": "5"}, {"amount_currency": "USD", "amount__gte": 5}),
        ({"since": f"{DAYS[1]}", "until": f"{DAYS[2]}"}, {"created_at__date__range": DAYS[1:3]}),
        ({"since": f"{DAYS[1]}", "until": f"{DAYS[2]}", "by": "paid"}, {"paid_at__date__range": DAYS[1:3]}),
        ({"q": "123"}, {"id": "pt_100123"}),
        ({"q": "5.00 EUR"}, {"amount": 5, "amount_currency": "EUR"}),
        ({"sort": "asc", "status": ["expired"]}, {"status": "expired"}),
    ],
)
def test_totals_of_a_short_list_are_exact(parameters: dict[str, Any], conditions: dict[str, Any]) -> None:
    assert summary(totals(**parameters)) == expected(**conditions)


@pytest.mark.parametrize(
    ("parameters", "conditions"),
    [
        ({}, {}),
        ({"by": "paid"}, {}),
        ({"currency": "USD"}, {"amount_currency": "USD"}),
        ({"currency": "EUR,USD", "status": ["failed", "open"]}, {"status__in": ["failed", "open"]}),
        ({"method": "ideal", "status": "succeeded"}, {"method": "ideal", "status": "succeeded"}),
        ({"since": f"{DAYS[1]}", "until": f"{DAYS[2]}"}, {"created_at__date__range": DAYS[1:3]}),
        ({"since": f"{DAYS[1]}", "until": f"{DAYS[2]}", "by": "paid"}, {"paid_at__date__range": DAYS[1:3]}),
        ({"until": f"{DAYS[3]}", "mode": "test"}, {"created_at__date__lte": DAYS[3], "mode": "test"}),
        ({"since": f"{DAYS[3]}", "by": "paid"}, {"paid_at__date__gte": DAYS[3]}),
        ({"since": "1950-01-01", "until": "2090-01-01"}, {}),
    ],
)
def test_totals_of_a_long_list_are_the_same_on_each_visit(
    settings: Settings, parameters: dict[str, Any], conditions: dict[str, Any]
) -> None:
    settings.PAYMENTS_SUMMED_PAYMENTS_MAX = 10  # the payments themselves are not counted

    first, second = totals(**parameters), totals(**parameters)

    assert summary(first) == summary(second) == expected(**conditions)
    assert SummedDay.objects.exists()


def test_long_list_with_other_filters_is_counted_on_request() -> None:
    by_word, exactly = totals(q="order"), totals(q="order", count="exact")

    assert by_word == ListTotals(more_than=COUNTED_MAX)
    assert summary(exactly) == expected()


def test_list_of_many_years_is_counted_on_request() -> None:
    PaymentFactory.create(id="pt_old", organization_id=1, created_at=NOON - timedelta(days=400))

    before, exactly, after = totals(), totals(count="exact"), totals()

    assert before == after == ListTotals(more_than=COUNTED_MAX)
    assert summary(exactly) == expected()
    assert totals(until=f"{date(2025, 12, 31)}").payments == 1


def test_days_without_time_to_sum_them_are_left(settings: Settings) -> None:
    settings.PAYMENTS_SUMMED_PAYMENTS_MAX = 50
    with failing_statements("%(begin)s", timeout_error()):
        stuck = totals()
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0
    going_on = totals()

    assert stuck == ListTotals(missing_days=5)
    assert going_on == ListTotals(missing_days=5, goes_on=True)


def test_days_are_summed_if_the_payments_cannot_be_counted_in_time() -> None:
    with failing_statements(f"LIMIT {COUNTED_MAX + 1}", timeout_error()):
        result = totals(method="ideal")

    assert summary(result) == expected(method="ideal")


def test_list_without_totals_in_time_says_so() -> None:
    with failing_statements(f"LIMIT {COUNTED_MAX + 1}", timeout_error()):
        result = totals(q="order")

    assert result == ListTotals(timed_out=True)
