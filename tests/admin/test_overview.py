"""The admin's start page: what thirty days come to."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments.admin import overview
from payments.admin.overview import DAYS, Overview, Share
from payments.models import Organization
from payments.totals import DailyTotals, Total
from tests.support.factories import OrganizationFactory, PaymentFactory

FIRST = date(2026, 1, 1)
SECOND = date(2026, 1, 2)


@pytest.fixture
def two_days() -> Overview:
    totals = {
        FIRST: [
            Total("EUR", "failed", "creditcard", 1, 500),
            Total("EUR", "succeeded", "creditcard", 3, 123_456),
            Total("USD", "succeeded", "ideal", 1, 1),
        ],
        SECOND: [Total("EUR", "open", "", 1, 100), Total("EUR", "succeeded", "creditcard", 1, -456)],
    }
    return Overview([FIRST, SECOND], DailyTotals(totals, []))


def test_payments_are_counted_and_their_success_is_that_of_the_decided(two_days: Overview) -> None:
    assert (two_days.payments, two_days.in_flight) == (7, 1)
    assert two_days.success_percent == 100 * 5 / 6


def test_what_was_paid_is_told_of_each_currency(two_days: Overview) -> None:
    assert [(volume.currency, volume.amount) for volume in two_days.volumes] == [("EUR", "1,230.00"), ("USD", "0.01")]


def test_shares_are_of_all_payments_and_success_is_of_the_kind(two_days: Overview) -> None:
    assert two_days.methods == [
        Share("creditcard", 5, 100 * 5 / 7, 4, 80.0),
        Share("not known", 1, 100 / 7, 0, None),
        Share("ideal", 1, 100 / 7, 1, 100.0),
    ]
    assert [(share.name, share.payments) for share in two_days.statuses if share.payments] == [
        ("Open", 1),
        ("Succeeded", 5),
        ("Failed", 1),
    ]


def test_the_table_has_the_latest_day_first(two_days: Overview) -> None:
    assert [tuple(day) for day in two_days.table] == [
        (SECOND, 2, 1, 100.0, ["-4.56", "0.00"]),
        (FIRST, 5, 4, 80.0, ["1,234.56", "0.01"]),
    ]


def test_the_charts_say_each_day_in_words_too(two_days: Overview) -> None:
    assert [column.title for column in two_days.payments_chart.columns] == [
        "2026-01-01: 5 payments, 4 succeeded",
        "2026-01-02: 2 payments, 1 succeeded",
    ]


def test_a_day_that_is_not_summed_counts_nothing() -> None:
    partial = Overview([FIRST, SECOND], DailyTotals({SECOND: []}, [FIRST]))

    assert (partial.payments, partial.success_percent, partial.missing) == (0, None, [FIRST])


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "SUMMING_SECONDS_MAX", 60)


@pytest.fixture
def organization(db: None) -> Organization:
    return OrganizationFactory.create(id=1)


def test_the_start_page_shows_the_last_thirty_days(admin_client: Client, organization: Organization) -> None:
    now = datetime.now(UTC)
    first_day = (now - timedelta(days=DAYS - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
    for created_at in (now, first_day, first_day - timedelta(milliseconds=1)):
        PaymentFactory.create(organization=organization, created_at=created_at)
    PaymentFactory.create(organization=organization, created_at=now, test=True)

    live = admin_client.get("/admin/")
    test = admin_client.get("/admin/", {"organization": "1", "mode": "test"})

    assert (live.context["overview"].payments, test.context["overview"].payments) == (2, 1)
    assert f"<title>{now:%Y-%m-%d}: 1 payments, 1 succeeded</title>" in live.content.decode()


def test_the_start_page_reads_payments_once_for_each_day_and_then_no_more(
    admin_client: Client, organization: Organization
) -> None:
    def payments_read() -> int:
        with CaptureQueriesContext(connection) as queries:
            admin_client.get("/admin/")
        return sum('FROM "payments_payment"' in query["sql"] for query in queries)

    assert [payments_read(), payments_read()] == [DAYS, 0]


@pytest.mark.parametrize("asked", [{"organization": "2"}, {"mode": "both"}, {"organization": "x"}])
def test_whose_payments_cannot_be_shown_is_said(
    admin_client: Client, organization: Organization, asked: dict[str, str]
) -> None:
    page = admin_client.get("/admin/", asked)

    assert page.status_code == 200
    assert "Select a valid choice" in page.content.decode()
    assert "overview" not in page.context
