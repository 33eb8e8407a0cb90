"""The totals above the payment list agree with totals that are added in Python.

The payments stay in the database for the whole module. Add no tests here that store payments.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.http import QueryDict
from pytest_django import DjangoDbBlocker, Settings

from payments.admin.payments.form import SearchForm
from payments.admin.payments.list import fetch_list
from payments.admin.payments.totals import ListTotals
from payments.models import Mode, Organization, Payment, Status
from payments.totals.daily import sum_missing_days
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.list_errors import failing_statements, timeout_error
from tests.support.sql import rolled_back

pytestmark = [pytest.mark.django_db, pytest.mark.also("citus")]

DAYS = [NOON.date() + timedelta(days=number) for number in range(5)]
DAY_PAYMENTS = 2100
MORE = "More than 10,000."


@pytest.fixture(scope="module", autouse=True)
def organization(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Organization]:
    with rolled_back(django_db_blocker):
        own, foreign = OrganizationFactory.create(id=1), OrganizationFactory.create(id=2)
        numbers = range(len(DAYS) * DAY_PAYMENTS)
        Payment.objects.bulk_create(build_payment(number, own) for number in numbers)
        Payment.objects.bulk_create(build_payment(number, foreign) for number in numbers[::100])
        yield own


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
        mode=Mode.TEST if number % 50 == 49 else Mode.LIVE,
    )


def totals(**parameters: Any) -> ListTotals:
    query = QueryDict(mutable=True)
    for name, value in {"organization": "1", **parameters}.items():
        query.setlist(name, value if isinstance(value, list) else [value])
    form = SearchForm.from_query(query)
    assert form.is_valid(), form.errors
    result = fetch_list(form, start=None).totals
    assert result is not None
    return result


def expected(**conditions: Any) -> tuple[int, float | None, dict[str, int]]:
    """Add the payments in Python: their number, the success rate in percent, and the hundredths of each currency."""
    payments = Payment.objects.filter(**{"organization_id": 1, "mode": "live", **conditions})
    rows = list(payments.values_list("status", "amount_currency", "amount"))
    statuses = Counter(status for status, _, _ in rows)
    completed = sum(statuses[status] for status in ("succeeded", "failed", "canceled", "expired"))
    sums: Counter[str] = Counter()
    for _, currency, amount in rows:
        sums[currency] += int(Decimal(str(amount)) * 100)
    return len(rows), 100 * statuses["succeeded"] / completed if completed else None, dict(sums)


def summary(result: ListTotals) -> tuple[int, float | None, dict[str, int]]:
    assert result.problem == ""
    return result.payments, result.success_percent, {amount.currency: amount.hundredths for amount in result.amounts}


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
        ({"q": "1234"}, {"id": "pt_101234"}),
        ({"q": "5.00 EUR"}, {"amount": 5, "amount_currency": "EUR"}),
        ({"sort": "asc", "status": ["expired"]}, {"status": "expired"}),
    ],
)
def test_totals_of_a_short_list_are_exact(parameters: dict[str, Any], conditions: dict[str, Any]) -> None:
    assert summary(totals(**parameters)) == expected(**conditions)


def test_totals_of_a_long_list_need_the_totals_of_its_days(organization: Organization) -> None:
    form = SearchForm.from_query(QueryDict("organization=1"))
    assert form.is_valid()

    missing = totals()
    sum_missing_days(form.calendar, days=DAYS[:2])
    stored = totals()
    by_word = totals(q="order")

    assert missing.problem == MORE
    assert summary(stored) == expected()
    assert by_word.problem == MORE


@pytest.mark.parametrize(
    ("parameters", "conditions"),
    [
        ({}, {}),
        ({"currency": "USD"}, {"amount_currency": "USD"}),
        ({"currency": "EUR,USD", "status": ["failed", "open"]}, {"status__in": ["failed", "open"]}),
        ({"method": "ideal", "status": "succeeded"}, {"method": "ideal", "status": "succeeded"}),
        ({"since": f"{DAYS[1]}", "until": f"{DAYS[2]}"}, {"created_at__date__range": DAYS[1:3]}),
        ({"until": f"{DAYS[3]}", "mode": "test"}, {"created_at__date__lte": DAYS[3], "mode": "test"}),
        ({"since": "1950-01-01", "until": "2090-01-01"}, {}),
    ],
)
@pytest.mark.parametrize("stored", [5, 3])
def test_filters_select_from_the_totals_of_days(
    settings: Settings, parameters: dict[str, Any], conditions: dict[str, Any], stored: int
) -> None:
    settings.PAYMENTS_SUMMED_PAYMENTS_MAX = 100  # the payments themselves are not counted
    form = SearchForm.from_query(QueryDict(f"organization=1&mode={parameters.get('mode', 'live')}"))
    assert form.is_valid()
    sum_missing_days(form.calendar, days=DAYS[:stored])

    assert summary(totals(**parameters)) == expected(**conditions)


def test_list_of_many_years_is_not_summed_by_days() -> None:
    PaymentFactory.create(id="pt_old", organization_id=1, created_at=NOON - timedelta(days=400))

    assert totals().problem == MORE
    assert totals(until=f"{date(2025, 12, 31)}").payments == 1


def test_list_without_totals_in_time_says_so() -> None:
    with failing_statements("LIMIT 10001", timeout_error()):
        result = totals()

    assert result.problem == "The payments could not be counted in time."
