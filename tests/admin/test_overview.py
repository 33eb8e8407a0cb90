"""The admin's start page: the figures of a period, their lists, and the comparison with another period."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from html import unescape
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest
from django.db import InternalError, connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from psycopg.errors import ReadOnlySqlTransaction
from pytest_django import Settings

from payments.admin.overview.figures import Overview
from payments.admin.overview.tables import Cell
from payments.admin.overview.totals import Lists, PeriodTotals
from payments.admin.overview.views import OverviewForm
from payments.admin.payments.form import SearchForm
from payments.admin.payments.list import fetch_list
from payments.admin.payments.totals import ListTotals
from payments.admin.periods import Period, current_day
from payments.admin.scope import EVERYTHING
from payments.listing.filter_types import VALUES_MAX
from payments.models import Access, DayKind, Organization, Payment, Status
from payments.models.days import day_of
from payments.templatetags.texts import grouped, money, percent
from payments.totals.daily import DailyTotals
from payments.totals.figures import Figures, Total, success_percent
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.list_errors import caused_by, failing_list_queries, timeout_error

pytestmark = pytest.mark.also("citus")

START_PAGE = "/admin/"
FIRST = date(2026, 1, 1)
SECOND = date(2026, 1, 2)
BOTH_DAYS = Period(FIRST, SECOND)
TEN_DAYS = Period(date(2025, 10, 20), date(2025, 10, 29))  # clocks change on the seventh
LISTS = Lists(Access(1, "live"), DayKind.PAID, BOTH_DAYS)


def total(status: str, payments: int, amount: int = 0, *, currency: str = "EUR", method: str = "ideal") -> Total:
    return Total(currency, status, method, payments, amount, 0, 0, 0, 0, 0)


def period_totals(*totals: Total, period: Period = BOTH_DAYS, missing: Sequence[date] = ()) -> PeriodTotals:
    """Return the totals of a period with all payments on its first day, created and paid."""
    by_day: dict[date, list[Total]] = {day: [] for day in period.days if day not in missing} | {
        period.first: list(totals)
    }
    return PeriodTotals(period, DailyTotals(by_day, missing), DailyTotals(by_day, missing))


def overview(now: PeriodTotals, before: PeriodTotals | None = None, *, today: date = SECOND) -> Overview:
    return Overview(now, before, LISTS, today)


def before(*totals: Total, missing: Sequence[date] = ()) -> PeriodTotals:
    return period_totals(*totals, period=BOTH_DAYS.compared_with("before"), missing=missing)


@pytest.fixture
def organization(db: None) -> Organization:
    return OrganizationFactory.create(id=1, time_zone="Europe/Amsterdam")


def text_of(page: Any) -> str:
    """Return the text of a page without tags, with single spaces."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page.content.decode())))


def heading(page: Any) -> str:
    return unescape(re.sub(r"<[^>]+>", "", re.findall(r"<h1>(.*?)</h1>", page.content.decode())[0]))


def dates(period: Period) -> dict[str, str]:
    return {"since": f"{period.first}", "until": f"{period.last}"}


# Figures and their lists.


@pytest.fixture
def payments(organization: Organization) -> list[Payment]:
    """Return the payments of twenty days around `TEN_DAYS`. Some payments were paid days later."""
    return Payment.objects.bulk_create(build_payments(organization))


def build_payments(organization: Organization) -> Iterator[Payment]:
    random = Random(1)  # noqa: S311
    start = datetime.combine(TEN_DAYS.first - timedelta(days=5), time(), UTC)
    for number in range(120):
        created_at = start + timedelta(minutes=random.randrange(20 * 24 * 60))
        status = random.choice([*Status.values, *[Status.SUCCEEDED] * 6])
        amount = Decimal(random.randrange(100_000)) / 100
        is_known = number % 3 > 0
        yield PaymentFactory.build(
            organization=organization,
            created_at=created_at,
            paid_at=created_at + timedelta(days=random.choice([0, 0, 4])) if status == Status.SUCCEEDED else None,
            status=status,
            method=random.choice(["creditcard", "ideal", ""]),
            mode=random.choice(["live", "live", "live", "test"]),
            amount=amount,
            amount_currency=random.choice(["EUR", "EUR", "USD"]),
            amount_net=amount - 1 if is_known else None,
            amount_net_currency="EUR" if is_known else None,
            amount_remaining=amount / 2 if is_known else None,
            amount_remaining_currency="EUR" if is_known else None,
        )


def live_payments(payments: Sequence[Payment], period: Period, kind: DayKind) -> list[Payment]:
    """Return the live payments of a period."""
    days, zone = set(period.days), ZoneInfo("Europe/Amsterdam")
    times = [(payment, getattr(payment, kind.column)) for payment in payments if payment.mode == "live"]
    return [payment for payment, at in times if at is not None and day_of(at, zone) in days]


def paid_in(payments: Sequence[Payment], currency: str) -> str:
    amounts = [
        payment.amount
        for payment in payments
        if payment.status == Status.SUCCEEDED and payment.amount_currency == currency
    ]
    return grouped(f"{sum(amounts):.2f}")


def list_totals(href: str) -> ListTotals:
    """Return the totals above the list of a link."""
    form = SearchForm.from_query(QueryDict(urlsplit(href).query), scope=EVERYTHING)
    assert form.is_valid(), form.errors
    listed = fetch_list(form, start=None)
    totals = listed.totals if listed.page.rows else ListTotals([])
    assert totals is not None
    assert totals.totals is not None
    return totals


@pytest.mark.parametrize("kind", DayKind)
def test_figures_are_those_of_the_payments(admin_client: Client, payments: list[Payment], kind: DayKind) -> None:
    page = admin_client.get(START_PAGE, {**dates(TEN_DAYS), "by": kind.value})

    shown = page.context["overview"]
    created = live_payments(payments, TEN_DAYS, DayKind.CREATED)
    paid = live_payments(payments, TEN_DAYS, kind)
    final = [payment for payment in created if payment.status in {"succeeded", "failed", "canceled", "expired"}]
    succeeded = [payment for payment in created if payment.status == Status.SUCCEEDED]
    assert {number.name: number.value for number in shown.numbers} == {
        "Paid in EUR": paid_in(paid, "EUR"),
        "Payments": grouped(len(created)),
        "Success rate": percent(100 * len(succeeded) / len(final)),
    }
    before = TEN_DAYS.compared_with("before")
    assert [(money(part.paid), money(part.compared_paid)) for part in shown.parts] == [
        tuple(paid_in(live_payments(payments, Period(day, day), kind), "EUR") for day in pair)
        for pair in zip(TEN_DAYS.days, before.days, strict=True)
    ]
    by_method = {row.name: row.cells[-1].text for row in shown.tables[2].rows}
    assert by_method["iDEAL"] == paid_in([payment for payment in paid if payment.method == "ideal"], "EUR")


def linked_figures(page: Overview) -> Iterator[tuple[str, str, str]]:
    """Yield the list of each figure, the kind of figure, and its text."""
    for number in page.numbers:
        yield number.href, number.name.partition(" in ")[0], number.value
    for part in page.parts:
        yield part.href, "Paid", money(part.paid)
    for table in page.tables:
        for row in table.rows:
            for column, cell in zip(table.columns[1:], row.cells, strict=True):
                if (href := cell.href or row.href) and column != "Share":
                    yield href, column.partition(" in ")[0], cell.text


def figure_of_list(totals: ListTotals, name: str) -> str:
    """Return a figure of the totals above a list."""
    if name in {"Payments", "Succeeded"}:
        return grouped(totals.payments)
    if name == "Success rate":
        return percent(success_percent(totals.totals or ()))
    assert len(totals.figures) <= 1
    figures = totals.figures[0] if totals.figures else Figures("EUR")
    is_known = {"Paid": True, "Refunded": figures.remaining_known}.get(name, figures.net_known)
    return money(getattr(figures, name.lower())) if is_known else "-"


@pytest.mark.parametrize("kind", DayKind)
def test_every_figure_leads_to_a_list_with_the_same_total(
    admin_client: Client, payments: list[Payment], kind: DayKind
) -> None:
    page = admin_client.get(START_PAGE, {**dates(TEN_DAYS), "by": kind.value})

    figures = list(linked_figures(page.context["overview"]))
    assert {name for _, name, _ in figures} == {
        "Paid",
        "Payments",
        "Succeeded",
        "Success rate",
        "Refunded",
        "Fees",
        "Net",
    }
    assert [figure_of_list(list_totals(href), name) for href, name, _ in figures] == [text for *_, text in figures]
    content = unescape(page.content.decode())
    assert [href for href, _, _ in figures if f'href="{href}"' not in content] == []
    assert admin_client.get(figures[0][0]).status_code == 200


@pytest.mark.extended
@pytest.mark.parametrize("by", [{}, {"by": "created"}])
def test_figures_of_presets_and_of_years_lead_to_the_same_totals(
    admin_client: Client, organization: Organization, settings: Settings, by: dict[str, str]
) -> None:
    settings.PAYMENTS_SUMMED_PAYMENTS_MAX = 0  # the payments themselves are not counted
    today = current_day(organization.zone)
    PaymentFactory.create_batch(2, organization=organization, created_at=datetime.now(UTC) - timedelta(days=1))
    PaymentFactory.create(organization=organization, created_at=datetime.now(UTC) - timedelta(days=380))

    for period in ({"period": "7d"}, dates(Period(today - timedelta(days=400), today))):
        page = admin_client.get(START_PAGE, period | by).context["overview"]
        for number in page.numbers:
            assert figure_of_list(list_totals(number.href), number.name.partition(" in ")[0]) == number.value


# Numbers and tables.


@pytest.mark.parametrize(
    ("now", "then", "is_fall"),
    [
        (80, 85, False),
        (79.5, 85, True),
        (80, 84, False),
        (85, 79, False),
        (None, 85, False),
        (80, None, False),
    ],
)
def test_fall_of_the_success_rate_by_more_than_five_points_needs_a_look(
    now: float | None, then: float | None, *, is_fall: bool
) -> None:
    def payments(rate: float | None) -> list[Total]:
        if rate is None:
            return [total("open", 1)]
        return [total("succeeded", int(10 * rate)), total("failed", int(1000 - 10 * rate)), total("open", 7)]

    page = overview(period_totals(*payments(now)), before(*payments(then)))

    assert page.has_fallen is is_fall


@pytest.mark.parametrize(("now", "then", "is_fall"), [(20, 20, True), (19, 20, False), (20, 19, False)])
def test_rate_of_few_payments_needs_no_look(now: int, then: int, *, is_fall: bool) -> None:
    page = overview(period_totals(total("failed", now), total("open", 9)), before(total("succeeded", then)))

    assert page.has_fallen is is_fall


def test_remark_leads_to_the_payments_that_did_not_succeed(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create_batch(20, organization=organization, created_at=NOON - timedelta(days=1))
    PaymentFactory.create_batch(20, organization=organization, failed=True)

    page = admin_client.get(START_PAGE, dates(Period(FIRST, FIRST)))

    assert "Needs a look The success rate fell by 100.0 points to 0.0 %." in text_of(page)
    assert list_totals(page.context["overview"].unsuccessful_href).payments == 20


def test_numbers_have_their_change_and_the_figure_before() -> None:
    now = period_totals(total("succeeded", 3, 30_000), total("failed", 1), total("open", 2))
    then = before(total("succeeded", 1, 40_000), total("failed", 1))

    numbers = overview(now, then).numbers

    assert [(number.name, number.value, *(number.change or ())) for number in numbers] == [
        ("Paid in EUR", "300.00", "down", "25.0 %", "400.00"),
        ("Payments", "6", "up", "200.0 %", "2"),
        ("Success rate", "75.0 %", "up", "25.0 points", "50.0 %"),
    ]


@pytest.mark.parametrize(
    "then",
    [None, before(), before(total("succeeded", 1, 100), missing=[BOTH_DAYS.compared_with("before").last])],
    ids=["today alone", "no payments", "missing days"],
)
def test_numbers_are_not_compared_without_complete_figures(then: PeriodTotals | None) -> None:
    page = overview(period_totals(total("succeeded", 3, 30_000)), then)

    assert [number.change for number in page.numbers] == [None] * 3
    assert [part.compared for part in page.parts] == [None, None]


def test_amount_known_for_some_payments_says_for_how_many() -> None:
    totals = period_totals(
        Total("EUR", "succeeded", "ideal", 5, 5000, 5, 4500, 500, 3, 200),
        Total("USD", "succeeded", "ideal", 2, 2000, 0, 0, 0, 0, 0),
        Total("JPY", "open", "ideal", 2, 2000, 2, 2000, 0, 0, 0),
    )

    rows = overview(totals).tables[0].rows

    assert [(row.name, row.bar, *row.cells) for row in rows] == [
        ("EUR", 71, Cell("5"), Cell("50.00"), Cell("2.00", note="known for 3"), Cell("5.00"), Cell("45.00")),
        ("USD", 29, Cell("2"), Cell("20.00"), Cell("-"), Cell("-"), Cell("-")),
    ]


def test_statuses_have_their_share_and_a_visible_bar() -> None:
    totals = period_totals(total("succeeded", 995), total("failed", 1), total("open", 4))

    rows = overview(totals).tables[1].rows

    assert [(row.name, row.bar, *(cell.text for cell in row.cells)) for row in rows] == [
        ("Open", 1, "4", "0.4 %"),
        ("Paid", 100, "995", "99.5 %"),
        ("Failed", 1, "1", "0.1 %"),
    ]


MANY_METHODS = [f"method{number:02}" for number in range(VALUES_MAX + 1)]


@pytest.mark.parametrize(
    ("others", "filtered"),
    [
        (["zelle"], ["zelle"]),
        (["zelle", ""], None),  # no filter selects payments without a method
        (MANY_METHODS[1:], MANY_METHODS[1:]),
        (MANY_METHODS, None),
    ],
)
def test_methods_beyond_the_table_share_a_row(others: list[str], filtered: list[str] | None) -> None:
    frequent = [f"frequent{number}" for number in range(10)]
    numbers = {method: 100 - index for index, method in enumerate([*frequent, *others])}
    totals = period_totals(*(total("succeeded", number, 100, method=method) for method, number in numbers.items()))

    rows = overview(totals).tables[2].rows

    assert [row.name for row in rows] == [*frequent, "Others"]
    payments, rate, paid = rows[-1].cells
    assert payments.text == grouped(sum(numbers[method] for method in others))
    assert paid.text == money(100 * len(others))
    assert [parse_qs(href).get("method") for href in (rows[-1].href, rate.href, paid.href)] == [filtered] * 3


def test_method_that_was_only_paid_in_the_period_has_a_row() -> None:
    by_day: dict[date, list[Total]] = {FIRST: [total("succeeded", 2, 500, method="banktransfer")], SECOND: []}
    totals = PeriodTotals(BOTH_DAYS, DailyTotals(by_day, []), DailyTotals({FIRST: [], SECOND: []}, []))

    [money_table, methods] = overview(totals).tables

    assert [row.name for row in money_table.rows] == ["EUR"]
    assert [(row.name, row.bar, *(cell.text for cell in row.cells)) for row in methods.rows] == [
        ("Bank transfer", 0, "0", "-", "5.00")
    ]


def test_main_currency_is_that_of_most_payments_also_of_the_period_before() -> None:
    euros = before(total("succeeded", 9, 100))

    pages = [
        overview(period_totals(*totals), euros)
        for totals in ([], [total("succeeded", 1, 1), total("succeeded", 2, 1, currency="USD")])
    ]

    assert [page.currency for page in pages] == ["EUR", "USD"]
    assert overview(period_totals(total("failed", 1)), None).currency == ""


def test_parts_of_the_compared_period_are_as_long_as_those_of_the_period() -> None:
    period = Period(date(2024, 12, 1), date(2025, 3, 2))  # 92 days; a year before, there is a 29 February
    then = period_totals(total("succeeded", 1, 700), period=period.compared_with("year"))

    parts = overview(period_totals(period=period), then).parts

    assert (then.period.length, len(parts)) == (93, 92)
    assert [part.compared for part in parts[:1]] == [Period(date(2023, 12, 1), date(2023, 12, 1))]
    assert sum(part.compared_paid for part in parts) == 700


# The page.


def test_start_page_shows_the_last_30_days(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=organization, created_at=datetime.now(UTC) - timedelta(minutes=1))

    page = admin_client.get(START_PAGE)

    today = current_day(organization.zone)
    shown = Period(today - timedelta(days=29), today)
    assert page.context["overview"].period == shown
    assert heading(page) == f"Organization 1 · {shown} · Live"
    assert "Money by paid day, counts and success rate by created day, Europe/Amsterdam." in text_of(page)
    assert "Administration" not in text_of(page)
    assert "Recent actions" not in text_of(page)
    assert "Refresh" not in page.headers


@pytest.mark.parametrize(
    ("query", "title", "compared"),
    [
        ("since=2025-10-01&until=2025-10-31&compare=before", "October 2025", "September 2025"),
        ("since=2025-10-01&until=2025-10-31&compare=year", "October 2025", "October 2024"),
        ("since=2025-10-02&until=2025-10-03", "2 to 3 October 2025", "30 September to 1 October 2025"),
    ],
)
def test_dates_are_compared_with_another_period(
    admin_client: Client, organization: Organization, query: str, title: str, compared: str
) -> None:
    PaymentFactory.create(organization=organization, created_at=datetime(2025, 10, 2, tzinfo=UTC))
    for first in (datetime(2025, 9, 30, tzinfo=UTC), datetime(2024, 10, 2, tzinfo=UTC)):
        PaymentFactory.create(organization=organization, created_at=first)

    page = admin_client.get(f"{START_PAGE}?{query}&by=created")

    assert heading(page) == f"Organization 1 · {title} · Live"
    assert f"All figures by created day, Europe/Amsterdam. Compared with {compared}." in text_of(page)
    assert page.context["overview"].compared.payments == 1
    assert 'name="since"' in page.content.decode()


def test_today_alone_is_not_compared(admin_client: Client, organization: Organization) -> None:
    for days in (0, 1, 365):
        PaymentFactory.create(organization=organization, created_at=datetime.now(UTC) - timedelta(days=days))

    pages = {
        period: admin_client.get(START_PAGE, {"period": period, "by": "created"}) for period in ("today", "yesterday")
    }

    assert pages["today"].context["overview"].before is None
    assert pages["yesterday"].context["overview"].before is not None
    assert "<figure" not in pages["today"].content.decode()


def test_organization_name_cannot_imitate_the_page(admin_client: Client, organization: Organization) -> None:
    Organization.objects.update(name="<b>\u202eshop")

    content = admin_client.get(START_PAGE).content.decode()

    assert "<title>&lt;b&gt;shop · " in content
    assert '<h1><bdi>&lt;b&gt;<bdi class="control" data-code="U+202E"' in content


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"organization": "2"}, "Organization: Choose an organization in the header"),
        ({"organization": "x"}, "Organization: Choose an organization in the header"),
        ({"mode": "both"}, "Mode: Select a valid choice"),
        ({"period": "8d"}, "Period: Select a valid choice"),
        ({"by": "both"}, "Days: Select a valid choice"),
        ({"compare": "all"}, "Compare with: Select a valid choice"),
        ({"period": "custom"}, "From: Enter a date in From or To"),
        ({"until": "2026-01-01"}, "From: Enter a date."),
        ({"since": "2026-01-02", "until": "2026-01-01"}, "To: Enter a date on or after From."),
        ({"since": "soon", "until": "2026-01-01"}, "From: Enter a valid date."),
        ({"since": "2020-12-28", "until": "2026-01-01"}, "From: Choose at most five years."),
        ({"since": "2026-01-01", "until": "9998-12-31"}, "To: Enter today or an earlier date."),
        ({"since": "9998-12-31"}, "From: Enter today or an earlier date."),
        ({"since": "9999-12-31", "until": "9999-12-31"}, "To: Enter a date in the years 1900 to 9998."),
    ],
)
def test_invalid_form_has_an_error_and_no_figures(
    admin_client: Client, organization: Organization, parameters: dict[str, str], error: str
) -> None:
    page = admin_client.get(START_PAGE, parameters)

    assert page.status_code == 200
    assert error in text_of(page)
    assert "overview" not in page.context


def test_last_day_is_today_if_it_is_left_out(organization: Organization) -> None:
    today = current_day(organization.zone)
    first = today - timedelta(days=5 * 366 - 1)

    form = OverviewForm.from_query(QueryDict(f"since={first}&until="), scope=EVERYTHING)

    assert form.is_valid()
    assert form.selected == Period(first, today)


def test_mode_without_payments_links_to_the_other(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=organization, test=True)

    live = admin_client.get(START_PAGE)
    test = admin_client.get(START_PAGE, {"mode": "test", **dates(Period(FIRST, FIRST))})

    assert re.search(r"Organization 1 *\W* has no live payments. View its test payments", text_of(live))
    assert '<a href="?organization=1&amp;mode=test">' in live.content.decode()
    assert 'class="figures' not in live.content.decode()
    assert "Payments 1" in text_of(test)


def test_organization_without_payments_explains_the_import(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=OrganizationFactory.create(id=2))

    page = admin_client.get(START_PAGE)

    assert "manage.py import_payments FILE" in text_of(page)
    assert "No payments in this period" not in text_of(page)


def test_empty_period_leads_to_the_newest_payment(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=organization, created_at=datetime(2025, 12, 31, 23, 30, tzinfo=UTC))

    page = admin_client.get(START_PAGE, {"period": "today"})

    assert "No payments in this period. The newest payment is from 1 January 2026 ." in text_of(page)
    [href] = re.findall(r'newest payment is from <a href="([^"]+)"', page.content.decode())
    assert list_totals(unescape(href)).payments == 1


def test_navigation_keeps_the_organization_and_the_mode(admin_client: Client, organization: Organization) -> None:
    OrganizationFactory.create(id=2)

    page = admin_client.get(START_PAGE, {"organization": "2", "mode": "test"}).content.decode()

    assert '<a href="/admin/?organization=2&amp;mode=test" aria-current="page">Overview</a>' in page
    assert '<a href="/admin/payments/payment/?organization=2&amp;mode=test">Payments</a>' in page
    assert "Test mode." in page


def queries_of(admin_client: Client, table: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        admin_client.get(START_PAGE, dates(BOTH_DAYS))
    return sum(f'FROM "{table}"' in query["sql"] for query in queries)


def test_start_page_sums_days_once_and_reads_four_times(admin_client: Client, organization: Organization) -> None:
    PaymentFactory.create(organization=organization)

    first = queries_of(admin_client, "payments_payment")

    assert 0 < first < 20
    assert queries_of(admin_client, "payments_payment") == 0
    assert queries_of(admin_client, "payments_summedday") == 4


# Missing figures.


def test_missing_days_are_announced_and_the_page_loads_again(
    admin_client: Client, organization: Organization, settings: Settings
) -> None:
    PaymentFactory.create(organization=organization)
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0  # no time to sum days

    page = admin_client.get(START_PAGE, dates(BOTH_DAYS))

    assert "Figures for 2 days are being computed. This page loads again by itself." in text_of(page)
    assert "Payments 0 without 2 days" in text_of(page)
    assert page.headers["Refresh"] == "1"


@pytest.mark.parametrize("error", [timeout_error(), caused_by(ReadOnlySqlTransaction("read-only"), InternalError)])
def test_page_does_not_load_again_for_days_that_it_cannot_sum(
    admin_client: Client, organization: Organization, error: Exception
) -> None:
    PaymentFactory.create(organization=organization)

    with failing_list_queries(error):
        page = admin_client.get(START_PAGE, dates(BOTH_DAYS))

    assert "Figures for 2 days are being computed. This takes too long for a page." in text_of(page)
    assert "Refresh" not in page.headers
    assert "being computed" not in text_of(admin_client.get(START_PAGE, dates(BOTH_DAYS)))


def test_part_with_missing_days_is_marked() -> None:
    page = overview(period_totals(total("succeeded", 1, 100), missing=[SECOND]), before(total("succeeded", 1, 100)))

    assert [part.style for part in page.parts] == ["", "missing"]
    assert page.compared is None
    assert [part.style for part in overview(period_totals(total("succeeded", 1, 100))).parts] == ["", "current"]


@contextmanager
def slow_day(day: date) -> Iterator[None]:
    """Make every query of the payments of this day time out."""
    noon = f"{day} 12:00:00"

    def fail(execute: Any, statement: str, parameters: Any, *rest: Any) -> Any:
        if "%(begin)s" in statement and parameters["begin"] <= noon < parameters["end"]:
            raise timeout_error()
        return execute(statement, parameters, *rest)

    with connection.execute_wrapper(fail):
        yield


def test_slow_day_does_not_block_the_others(admin_client: Client, organization: Organization) -> None:
    period = Period(FIRST, FIRST + timedelta(days=4))
    for day in period.days:
        PaymentFactory.create(organization=organization, created_at=datetime.combine(day, time(12), UTC))

    with slow_day(period.days[2]):
        for _ in range(500):  # each begins at a random day
            page = admin_client.get(START_PAGE, {**dates(period), "by": "created"})
            if page.context["overview"].missing == {period.days[2]}:
                break

    assert "Figures for 1 day are being computed." in text_of(page)
    assert "Payments 4 without 1 day" in text_of(page)
