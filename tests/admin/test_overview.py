"""The admin's start page: figures of the last 30 days."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments.admin import overview
from payments.admin.overview import DAYS, Overview
from payments.admin.statistics import Day, Group, Paid, Statistics
from payments.models import Organization
from payments.templatetags.numbers import money
from payments.totals import DailyTotals, Total
from tests.support.factories import OrganizationFactory, PaymentFactory

FIRST = date(2026, 1, 1)
SECOND = date(2026, 1, 2)


@pytest.fixture
def two_days() -> Statistics:
    totals = {
        FIRST: [
            Total("EUR", "failed", "creditcard", 1, 500),
            Total("EUR", "succeeded", "creditcard", 3, 123_456),
            Total("USD", "succeeded", "ideal", 1, 1),
        ],
        SECOND: [Total("EUR", "open", "", 1, 100), Total("EUR", "succeeded", "creditcard", 1, -456)],
    }
    return Statistics([FIRST, SECOND], DailyTotals(totals, []))


def test_success_rate_counts_completed_payments_only(two_days: Statistics) -> None:
    assert (two_days.payments, two_days.in_progress) == (7, 1)
    assert two_days.success_percent == 100 * 5 / 6


def test_paid_amounts_are_added_up_by_currency(two_days: Statistics) -> None:
    assert two_days.paid == [Paid("EUR", 123_000), Paid("USD", 1)]


@pytest.mark.parametrize(
    ("hundredths", "text"),
    [(0, "0.00"), (1, "0.01"), (-5, "-0.05"), (123_456, "1,234.56"), (10**18 + 1, "10,000,000,000,000,000.01")],
)
def test_amounts_have_two_decimal_places(hundredths: int, text: str) -> None:
    assert money(hundredths) == text


def test_groups_have_their_share_and_their_own_success_rate(two_days: Statistics) -> None:
    assert two_days.groups_by_method == [
        Group("creditcard", 5, 100 * 5 / 7, 80.0),
        Group("", 1, 100 / 7, None),
        Group("ideal", 1, 100 / 7, 100.0),
    ]
    assert [(group.name, group.payments) for group in two_days.groups_by_status if group.payments] == [
        ("Open", 1),
        ("Succeeded", 5),
        ("Failed", 1),
    ]


def test_each_day_has_its_own_figures(two_days: Statistics) -> None:
    assert two_days.by_day == [Day(FIRST, 5, 4, 80.0, [123_456, 1]), Day(SECOND, 2, 1, 100.0, [-456, 0])]


def test_bars_have_the_figures_of_their_day_as_tooltips(two_days: Statistics) -> None:
    charts = Overview(two_days)

    assert [bar.title for bar in charts.payments_chart.bars] == [
        "2026-01-01: 5 payments, 4 succeeded",
        "2026-01-02: 2 payments, 1 succeeded",
    ]
    assert [[bar.title for bar in chart.bars] for _, chart in charts.paid_charts] == [
        ["2026-01-01: 1,234.56 EUR", "2026-01-02: -4.56 EUR"],
        ["2026-01-01: 0.01 USD", "2026-01-02: 0.00 USD"],
    ]


def test_day_without_totals_counts_as_empty() -> None:
    statistics = Statistics([FIRST, SECOND], DailyTotals({SECOND: []}, [FIRST]))

    assert (statistics.payments, statistics.success_percent, statistics.missing_days) == (0, None, [FIRST])


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "SUMMING_SECONDS_MAX", 60)


@pytest.fixture
def organization(db: None) -> Organization:
    return OrganizationFactory.create(id=1)


def test_start_page_shows_the_last_30_days(admin_client: Client, organization: Organization) -> None:
    now = datetime.now(UTC)
    first_day = (now - timedelta(days=DAYS - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
    for created_at in (now, first_day, first_day - timedelta(milliseconds=1)):
        PaymentFactory.create(organization=organization, created_at=created_at)
    PaymentFactory.create(organization=organization, created_at=now, test=True)

    live = admin_client.get("/admin/")
    test = admin_client.get("/admin/", {"organization": "1", "mode": "test"})

    assert [page.context["overview"].statistics.payments for page in (live, test)] == [2, 1]
    assert f"<title>{now:%Y-%m-%d}: 1 payments, 1 succeeded</title>" in live.content.decode()


def test_start_page_reads_the_payments_of_each_day_once(admin_client: Client, organization: Organization) -> None:
    def count_payment_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            admin_client.get("/admin/")
        return sum('FROM "payments_payment"' in query["sql"] for query in queries)

    assert [count_payment_queries(), count_payment_queries()] == [DAYS, 0]


@pytest.mark.parametrize("parameters", [{"organization": "2"}, {"mode": "both"}, {"organization": "x"}])
def test_start_page_names_an_invalid_organization_or_mode(
    admin_client: Client, organization: Organization, parameters: dict[str, str]
) -> None:
    page = admin_client.get("/admin/", parameters)

    assert page.status_code == 200
    assert "Select a valid choice" in page.content.decode()
    assert "overview" not in page.context
