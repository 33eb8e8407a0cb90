"""The admin's start page: the figures of a period, their links, and the comparison with the period before."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from html import unescape
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments.admin.overview.figures import Overview
from payments.admin.overview.statistics import Amount, Group, PeriodPart, Statistics
from payments.admin.overview.views import DAYS_MAX
from payments.admin.periods import Period
from payments.listing.filter_types import VALUES_MAX
from payments.models import IN_PROGRESS, Access, Organization, Payment, Status
from payments.templatetags.numbers import grouped, money, percent
from payments.totals.daily import DailyTotals
from payments.totals.figures import Total
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.list_errors import timeout_error

pytestmark = pytest.mark.also("citus")

START_PAGE = "/admin/"
FIRST = date(2026, 1, 1)
SECOND = date(2026, 1, 2)
ACCESS = Access(1, "live")
BOTH_DAYS = Period(FIRST, SECOND)
NOT_SUMMED = Statistics(BOTH_DAYS.compared_with("before"), DailyTotals({}, BOTH_DAYS.compared_with("before").days))


@pytest.fixture
def two_days() -> Statistics:
    totals = {
        FIRST: [
            Total("EUR", "failed", "creditcard", 1, 500, 0, 0, 0, 0, 0),
            Total("EUR", "succeeded", "creditcard", 3, 123_456, 0, 0, 0, 0, 0),
            Total("USD", "succeeded", "ideal", 1, 1, 0, 0, 0, 0, 0),
        ],
        SECOND: [
            Total("EUR", "open", "", 1, 100, 0, 0, 0, 0, 0),
            Total("EUR", "succeeded", "creditcard", 1, -456, 0, 0, 0, 0, 0),
        ],
    }
    return Statistics(BOTH_DAYS, DailyTotals(totals, []))


def test_success_rate_counts_completed_payments_only(two_days: Statistics) -> None:
    assert (two_days.payments, two_days.in_progress) == (7, 1)
    assert two_days.success_percent == 100 * 5 / 6


def test_paid_amounts_are_added_up_by_currency(two_days: Statistics) -> None:
    assert two_days.paid == [Amount("EUR", 123_000), Amount("USD", 1)]


@pytest.mark.parametrize(
    ("hundredths", "text"),
    [(0, "0.00"), (1, "0.01"), (-5, "-0.05"), (123_456, "1,234.56"), (10**18 + 1, "10,000,000,000,000,000.01")],
)
def test_amounts_have_two_decimal_places(hundredths: int, text: str) -> None:
    assert money(hundredths) == text


def test_groups_have_their_share_and_their_own_success_rate(two_days: Statistics) -> None:
    assert two_days.groups_by_method == [
        Group(["creditcard"], "creditcard", 5, 100 * 5 / 7, 80.0),
        Group([""], "unknown", 1, 100 / 7, None),
        Group(["ideal"], "ideal", 1, 100 / 7, 100.0),
    ]
    assert [(group.name, group.payments) for group in two_days.groups_by_status if group.payments] == [
        ("Open", 1),
        ("Succeeded", 5),
        ("Failed", 1),
    ]


@pytest.mark.parametrize(("share", "length"), [(0, 0), (0.4, 0.4), (0.5, 2.0), (1.9, 2.0), (2.1, 2.1), (100, 100)])
def test_bar_of_a_share_is_empty_visible_or_to_scale(share: float, length: float) -> None:
    assert Group(["ideal"], "ideal", 1, share, None).bar_percent == length


def test_each_day_has_its_own_figures(two_days: Statistics) -> None:
    assert two_days.by_part == [
        PeriodPart(Period(FIRST, FIRST), 5, 4, 80.0, [123_456, 1]),
        PeriodPart(Period(SECOND, SECOND), 2, 1, 100.0, [-456, 0]),
    ]


def test_bars_have_the_figures_of_their_day_as_tooltips(two_days: Statistics) -> None:
    charts = Overview(ACCESS, two_days, NOT_SUMMED)

    assert [label.title for label in charts.payments_chart.labels] == [
        "2026-01-01: 5 payments, 4 succeeded",
        "2026-01-02: 2 payments, 1 succeeded",
    ]
    assert [[label.title for label in chart.labels] for _, chart, _ in charts.paid_charts] == [
        ["2026-01-01: 1,234.56 EUR", "2026-01-02: -4.56 EUR"],
        ["2026-01-01: 0.01 USD", "2026-01-02: 0.00 USD"],
    ]
    assert [label.title for label in charts.success_chart.labels] == [
        "2026-01-01: 80.0 %",
        "2026-01-02: 100.0 %",
    ]


def test_day_without_totals_counts_as_empty() -> None:
    statistics = Statistics(BOTH_DAYS, DailyTotals({SECOND: []}, [FIRST]))

    assert (statistics.payments, statistics.success_percent, statistics.missing_days) == (0, None, [FIRST])


def test_currencies_beyond_the_charts_are_named(two_days: Statistics) -> None:
    codes = ["EUR", "GBP", "JPY", "SEK", "USD"]
    totals = [Total(code, "succeeded", "ideal", 9 - number, 100, 0, 0, 0, 0, 0) for number, code in enumerate(codes)]

    charts = Overview(ACCESS, Statistics(BOTH_DAYS, DailyTotals({FIRST: totals, SECOND: []}, [])), NOT_SUMMED)

    assert [paid.currency for paid, _, _ in charts.paid_charts] == codes[:4]
    assert [tile.name for tile in charts.tiles][3:] == [f"Paid in {code}" for code in codes[:4]]
    assert charts.other_paid == [Amount("USD", 100)]


MANY_METHODS = [f"method{number:02}" for number in range(VALUES_MAX + 1)]


@pytest.mark.parametrize(
    ("others", "filtered"),
    [
        (["zelle"], ["zelle"]),
        (["zelle", "bizum"], ["zelle", "bizum"]),
        (["zelle", ""], None),  # no filter selects payments without a method
        (MANY_METHODS[1:], MANY_METHODS[1:]),
        (MANY_METHODS, None),
    ],
)
def test_methods_beyond_the_table_share_a_row(others: list[str], filtered: list[str] | None) -> None:
    frequent = [f"frequent{number}" for number in range(10)]
    numbers = {method: 100 - index for index, method in enumerate([*frequent, *others])}
    totals = [Total("EUR", "succeeded", method, number, 100, 0, 0, 0, 0, 0) for method, number in numbers.items()]

    rows = Overview(ACCESS, Statistics(BOTH_DAYS, DailyTotals({FIRST: totals, SECOND: []}, [])), NOT_SUMMED).method_rows

    assert [group.name for group, _ in rows] == [*frequent, "others"]
    assert rows[-1][0].payments == sum(numbers[method] for method in others)
    assert parse_qs(rows[-1][1]).get("method") == filtered


def test_comparison_waits_for_all_days_of_the_period_before(two_days: Statistics) -> None:
    before = BOTH_DAYS.compared_with("before")
    partial = Statistics(before, DailyTotals({before.first: []}, [before.last]))
    complete = Statistics(before, DailyTotals({before.first: [], before.last: []}, []))

    changes = [[tile.change for tile in Overview(ACCESS, two_days, other).tiles] for other in (partial, complete)]

    assert changes[0] == [""] * 5
    assert changes[1] == [
        "No payments before",
        "No completed payments before",
        "No payments before",
        "0.00 before",
        "0.00 before",
    ]


def test_missing_days_are_named_as_periods() -> None:
    period = Period(FIRST, FIRST + timedelta(days=29))
    missing = [day for day in period.days if day.day % 4 != 0]

    page = Overview(ACCESS, Statistics(period, DailyTotals({}, missing)), NOT_SUMMED)

    assert list(map(str, page.missing_periods)) == [
        f"2026-01-{first:02} to 2026-01-{first + 2:02}" for first in (1, 5, 9, 13, 17)
    ]
    assert page.has_more_missing_periods


@pytest.fixture
def organization(db: None) -> Organization:
    return OrganizationFactory.create(id=1)


def dates(period: Period) -> dict[str, str]:
    """Return the parameters that select a period."""
    return {"since": f"{period.first}", "until": f"{period.last}"}


def text_of(page: Any) -> str:
    """Return the text of a page without tags, with single spaces."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page.content.decode())))


def test_start_page_shows_the_last_30_days(admin_client: Client, organization: Organization) -> None:
    now = datetime.now(UTC)
    first_day = (now - timedelta(days=29)).replace(hour=0, minute=0, second=0, microsecond=0)
    for created_at in (now, first_day, first_day - timedelta(milliseconds=1)):
        PaymentFactory.create(organization=organization, created_at=created_at)
    PaymentFactory.create(organization=organization, created_at=now, test=True)

    live = admin_client.get(START_PAGE)
    test = admin_client.get(START_PAGE, {"organization": "1", "mode": "test"})

    assert [page.context["overview"].statistics.payments for page in (live, test)] == [2, 1]
    assert f"<title>{now:%Y-%m-%d}: 1 payment, 1 succeeded</title>" in live.content.decode()
    assert "Payments 2 Up 100.0 %" in text_of(live)


@pytest.mark.parametrize(
    ("period", "title", "days"),
    [("today", "Today", 1), ("7d", "Last 7 days", 7), ("30d", "Last 30 days", 30), ("90d", "Last 90 days", 90)],
)
def test_presets_select_the_days_up_to_today(
    admin_client: Client, organization: Organization, period: str, title: str, days: int
) -> None:
    page = admin_client.get(START_PAGE, {"period": period})

    today = datetime.now(UTC).date()
    assert page.context["overview"].period == Period(today - timedelta(days=days - 1), today)
    assert f"<h1>{title}</h1>" in page.content.decode()
    assert f'period={period}" aria-current="true">{title}</a>' in page.content.decode()


def test_this_month_is_compared_with_the_month_before(admin_client: Client, organization: Organization) -> None:
    page = admin_client.get(START_PAGE, {"period": "month"})

    shown = page.context["overview"]
    assert (shown.period.first.day, shown.compared_with("before").period.first.day) == (1, 1)
    assert shown.compared_with("before").period.last.day <= shown.period.last.day


@pytest.mark.parametrize("parameters", [{}, {"period": ""}, {"period": "custom"}])
def test_dates_select_a_period(admin_client: Client, organization: Organization, parameters: dict[str, str]) -> None:
    PaymentFactory.create(organization=organization)

    page = admin_client.get(START_PAGE, {**parameters, "since": "2026-01-01", "until": "2026-01-02"})

    content = page.content.decode()
    assert page.context["overview"].period == BOTH_DAYS
    assert "<h1>2026-01-01 to 2026-01-02</h1>" in content
    assert "compared with 2025-12-30 to 2025-12-31" in content
    # The form of the organization and the mode keeps the dates.
    for name, value in (("period", "custom"), ("since", "2026-01-01"), ("until", "2026-01-02")):
        assert f'<input type="hidden" name="{name}" value="{value}">' in content
    assert 'aria-current="true"' not in content
    assert '<rect class="column" x="0" width="10"' in content
    assert '<rect class="column" x="10" width="10"' in content


def test_presets_keep_the_organization_and_the_mode(admin_client: Client, organization: Organization) -> None:
    page = admin_client.get(START_PAGE, {"organization": "1", "mode": "test"}).content.decode()

    links = [parse_qs(href) for href in re.findall(r'href="\?([^"]+)"', page.replace("&amp;", "&"))]
    assert [link.pop("period") for link in links] == [["today"], ["7d"], ["30d"], ["90d"], ["month"]]
    assert links == [{"organization": ["1"], "mode": ["test"]}] * 5


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"organization": "2"}, "Organization: Select a valid choice"),
        ({"mode": "both"}, "Mode: Select a valid choice"),
        ({"organization": "x"}, "Organization: Select a valid choice"),
        ({"period": "8d"}, "Period: Select a valid choice"),
        ({"period": "custom"}, "From: Enter a date"),
        ({"since": "2026-01-01"}, "To: Enter a date."),
        ({"until": "2026-01-01"}, "From: Enter a date."),
        ({"since": "2026-01-02", "until": "2026-01-01"}, "To: Enter a date on or after From."),
        ({"since": "soon", "until": "2026-01-01"}, "From: Enter a valid date."),
        ({"period": "7d", "since": "2026-01-01"}, "Period: Choose Custom dates, or clear From and To."),
        ({"since": "2024-01-01", "until": "2025-01-01"}, f"To: Choose at most {DAYS_MAX} days."),
        ({"since": "9999-12-31", "until": "9999-12-31"}, "To: Enter a date in the years 1900 to 9998."),
        ({"since": "9998-12-31", "until": "9998-12-31"}, "To: Enter today (UTC) or an earlier date."),
    ],
)
def test_invalid_values_are_named_and_show_no_figures(
    admin_client: Client, organization: Organization, parameters: dict[str, str], error: str
) -> None:
    page = admin_client.get(START_PAGE, parameters)

    assert page.status_code == 200
    assert error in text_of(page)
    assert "<h1>Overview</h1>" in page.content.decode()
    assert "overview" not in page.context


@pytest.mark.parametrize(
    ("since", "until"), [("2024-01-01", "2024-12-31"), ("1900-01-01", "1900-01-01"), ("1900-01-01", "1900-12-31")]
)
def test_longest_and_earliest_periods_are_shown(
    admin_client: Client, organization: Organization, since: str, until: str
) -> None:
    PaymentFactory.create(organization=organization)

    page = admin_client.get(START_PAGE, {"since": since, "until": until})

    assert "No payments in this period. The newest payment is from 2026-01-01 ." in text_of(page)


def create_payments(organization: Organization, *, count: int, days: int) -> None:
    """Create payments of various kinds in the days before the second of the days."""
    random = Random(1)  # noqa: S311
    for _ in range(count):
        created_at = NOON + timedelta(days=1) - timedelta(minutes=random.randrange(days * 24 * 60))
        PaymentFactory.create(
            organization=organization,
            created_at=created_at,
            status=random.choice(Status.values),
            method=random.choice(["creditcard", "ideal", ""]),
            amount=Decimal(random.randrange(100_000)) / 100,
            amount_currency=random.choice(["EUR", "EUR", "USD"]),
            mode=random.choice(["live", "live", "test"]),
        )


def payments_of(period: Period, **values: str) -> list[Payment]:
    """Return the live payments of a period, selected in Python."""
    return [
        payment
        for payment in Payment.objects.visible_to(ACCESS)
        if period.first <= payment.created_at.date() <= period.last
        and all(getattr(payment, name) == value for name, value in values.items())
    ]


def paid_text(payments: Iterable[Payment], currency: str) -> str:
    amounts = [
        payment.amount
        for payment in payments
        if payment.status == Status.SUCCEEDED and payment.amount_currency == currency
    ]
    return grouped(f"{sum(amounts):.2f}")


@pytest.mark.parametrize("length", [1, 2, 92, 93, DAYS_MAX])
def test_figures_are_those_of_the_payments(admin_client: Client, organization: Organization, length: int) -> None:
    create_payments(organization, count=120, days=2 * length)
    period = Period(SECOND - timedelta(days=length - 1), SECOND)

    page = admin_client.get(START_PAGE, dates(period)).context["overview"]

    payments = payments_of(period)
    completed = [payment for payment in payments if payment.status not in IN_PROGRESS]
    succeeded = payments_of(period, status=Status.SUCCEEDED)
    assert {tile.name: tile.value for tile in page.tiles} == {
        "Payments": f"{len(payments)}",
        "Success rate": percent(100 * len(succeeded) / len(completed)),
        "In progress": f"{len(payments) - len(completed)}",
        "Paid in EUR": paid_text(payments, "EUR"),
        "Paid in USD": paid_text(payments, "USD"),
    }
    assert [part.payments for part in page.parts] == [len(payments_of(part.period)) for part in page.parts]
    assert [part.succeeded for part in page.parts] == [
        len(payments_of(part.period, status=Status.SUCCEEDED)) for part in page.parts
    ]
    assert [[money(hundredths) for hundredths in part.paid] for part in page.parts] == [
        [paid_text(payments_of(part.period), currency) for currency in ("EUR", "USD")] for part in page.parts
    ]
    assert page.compared_with("before").payments == len(
        payments_of(Period(period.first - timedelta(days=length), period.first))
    ) - len(payments_of(Period(period.first, period.first)))
    assert {group.values[0]: group.payments for group, _ in page.method_rows} == {
        method: len(payments_of(period, method=method)) for method in ("creditcard", "ideal", "")
    }


def linked_numbers(page: Overview) -> Iterator[tuple[str, int]]:
    """Yield the list that each figure links to, and the number of its payments."""
    statistics = page.statistics
    tiles = {tile.name: tile.href for tile in page.tiles}
    by_status = {group.values[0]: group.payments for group, _ in page.status_rows}
    yield tiles["Payments"], statistics.payments
    yield tiles["In progress"], statistics.in_progress
    yield tiles["Success rate"], statistics.payments - statistics.in_progress
    yield page.href(), statistics.payments
    yield page.completed_href, statistics.payments - statistics.in_progress
    newest_day = max(payment.created_at.date() for payment in payments_of(statistics.period))
    yield page.newest_href, len(payments_of(Period(newest_day, newest_day)))
    for group, href in (*page.status_rows, *page.method_rows):
        if href:
            yield href, group.payments
    for part, href in page.part_rows:
        yield href, part.payments
    for label, part in zip(page.payments_chart.labels, page.parts, strict=True):
        yield label.href, part.payments
    for label, part in zip(page.success_chart.labels, page.parts, strict=True):
        yield label.href, sum(payment.status not in IN_PROGRESS for payment in payments_of(part.period))
    paid = [len(payments_in(page.period, currency)) for currency in statistics.currencies]
    assert sum(paid) == by_status["succeeded"]
    yield from zip([chart.href for chart in page.paid_charts], paid, strict=True)
    for currency, paid_chart in zip(statistics.currencies, page.paid_charts, strict=True):
        yield tiles[f"Paid in {currency}"], len(payments_in(page.period, currency))
        for label, part in zip(paid_chart.chart.labels, page.parts, strict=True):
            yield label.href, len(payments_in(part.period, currency))


def payments_in(period: Period, currency: str) -> list[Payment]:
    """Return the payments of a period that succeeded in a currency."""
    payments = payments_of(period, status=Status.SUCCEEDED)
    return [payment for payment in payments if payment.amount_currency == currency]


@pytest.mark.parametrize("length", [3, 100])
def test_every_figure_links_to_the_list_of_its_payments(
    admin_client: Client, organization: Organization, length: int
) -> None:
    create_payments(organization, count=60, days=length)
    page = admin_client.get(START_PAGE, dates(Period(SECOND - timedelta(days=length - 1), SECOND))).context["overview"]

    expected = dict(linked_numbers(page))

    lists = {href: admin_client.get(href) for href in expected}
    assert {href: len(response.context["payments"]) for href, response in lists.items()} == expected
    assert all(response.context["form"].is_valid() for response in lists.values())


def test_links_are_in_the_page(admin_client: Client, organization: Organization) -> None:
    create_payments(organization, count=60, days=3)

    response = admin_client.get(START_PAGE, {"since": "2025-12-31", "until": "2026-01-02"})

    links = set(re.findall(r'href="(/admin/payments/payment/\?[^"]+)"', unescape(response.content.decode())))
    page = response.context["overview"]
    expected = {href for href, _ in linked_numbers(page)} - {page.newest_href}
    assert expected <= links
    assert {urlsplit(href).path for href in expected} == {"/admin/payments/payment/"}


def test_single_payment_of_a_day_has_tiles_but_no_charts(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=organization)

    page = admin_client.get(START_PAGE, dates(Period(FIRST, FIRST)))

    content = text_of(page)
    assert "Payments 1 No payments before" in content
    assert "Success rate 100.0 % of completed payments No completed payments before" in content
    assert "Paid in EUR 10.00 0.00 before" in content
    assert "<figure" not in page.content.decode()
    assert "Payments by method" in content


def test_days_without_payments_have_bars_of_no_height(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=organization)

    page = admin_client.get(START_PAGE, {"since": "2025-12-01", "until": "2026-01-31"}).context["overview"]

    heights = [bar.height for bar in page.payments_chart.bars]
    assert len(heights) == 62
    assert [index for index, height in enumerate(heights) if height] == [31]


def test_figures_without_a_value_have_no_tile_and_no_chart(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=organization, open=True)

    page = admin_client.get(START_PAGE, {"since": "2025-12-31", "until": "2026-01-01"})

    assert [tile.name for tile in page.context["overview"].tiles] == ["Payments", "In progress", "Paid in EUR"]
    assert "Payments per day" in text_of(page)
    assert "Success rate per day" not in text_of(page)


def test_mode_without_payments_links_to_the_other(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=organization, test=True)

    live = admin_client.get(START_PAGE)
    test = admin_client.get(START_PAGE, {"mode": "test", **dates(Period(FIRST, FIRST))})

    assert re.search(r"Organization 1 *\W* has no live payments. View its test payments", text_of(live))
    assert '<a href="?organization=1&amp;mode=test">' in live.content.decode()
    assert 'class="tiles"' not in live.content.decode()
    assert "Payments 1" in text_of(test)


def test_organization_without_payments_explains_the_import(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=OrganizationFactory.create(id=2))

    page = admin_client.get(START_PAGE)

    assert "manage.py import_payments FILE" in text_of(page)
    assert "No payments in this period" not in text_of(page)


def test_navigation_and_later_visits_keep_the_organization_and_the_mode(
    admin_client: Client, organization: Organization
) -> None:
    OrganizationFactory.create(id=2)

    page = admin_client.get(START_PAGE, {"organization": "2", "mode": "test"}).content.decode()
    later = admin_client.get(START_PAGE)

    assert '<a href="/admin/?organization=2&amp;mode=test" aria-current="page">Overview</a>' in page
    assert '<a href="/admin/payments/payment/?organization=2&amp;mode=test">Payments</a>' in page
    assert later.context["form"].access == Access(2, "test")
    assert "Test mode." in later.content.decode()


def count_payment_queries(admin_client: Client) -> int:
    with CaptureQueriesContext(connection) as queries:
        admin_client.get(START_PAGE)
    return sum('FROM "payments_payment"' in query["sql"] for query in queries)


def test_start_page_reads_payments_once_and_few_days_together(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=organization, created_at=datetime.now(UTC))

    first, second = count_payment_queries(admin_client), count_payment_queries(admin_client)

    assert (0 < first < 20, second) == (True, 0)


@contextmanager
def slow_day(day: date) -> Iterator[None]:
    """Make every query of the payments of this day time out."""
    noon = datetime.combine(day, time(12, tzinfo=UTC))

    def fail(execute: Any, statement: str, parameters: Any, *rest: Any) -> Any:
        times = [read_time(value) for value in parameters or () if re.match(r"\d{4}-\d\d-\d\d ", str(value))]
        if 'FROM "payments_payment"' in statement and len(times) == 2 and times[0] <= noon < times[1]:
            raise timeout_error()
        return execute(statement, parameters, *rest)

    with connection.execute_wrapper(fail):
        yield


def read_time(value: Any) -> datetime:
    """Return the time in a parameter of a query: text on SQLite, a time on PostgreSQL."""
    return datetime.fromisoformat(f"{value}").replace(tzinfo=UTC)


@pytest.mark.parametrize("slow", [FIRST, FIRST + timedelta(days=7), FIRST + timedelta(days=9)])
def test_slow_day_is_named_and_does_not_block_the_others(
    admin_client: Client, organization: Organization, slow: date
) -> None:
    period = Period(FIRST, FIRST + timedelta(days=9))
    for day in period.days:
        PaymentFactory.create(organization=organization, created_at=datetime.combine(day, time(tzinfo=UTC)))

    with slow_day(slow):
        for _ in range(1000):  # each begins at a random day
            page = admin_client.get(START_PAGE, dates(period))
            if page.context["overview"].statistics.payments == 9 and page.context["overview"].compared:
                break

    assert f"The figures of 1 of 10 days are not ready yet and are missing below: {slow}." in text_of(page)
    assert "Payments 9 No payments before" in text_of(page)
