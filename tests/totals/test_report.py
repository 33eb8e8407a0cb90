"""The report of a month: its figures by currency, method and day, and the open payments, in all formats."""

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from pytest_django import Settings

from payments.export.reports import report_csv, report_json, report_text
from payments.models import DayKind, Organization
from payments.totals.daily import Calendar
from payments.totals.report import (
    OpenPayments,
    Report,
    TotalsNotReady,
    Unit,
    days_of_month,
    month_of,
    parse_month,
    read_report,
)
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.totals.october import at, create_october

pytestmark = pytest.mark.also("citus")

OCTOBER = date(2026, 10, 1)
LATER = date(2026, 11, 27)


@pytest.fixture
def october(organization: Organization) -> Organization:
    create_october(organization)
    return organization


def report_of(
    organization: Organization,
    kind: DayKind = DayKind.PAID,
    *,
    month: date = OCTOBER,
    today: date = LATER,
    time_zone: str = "UTC",
) -> Report:
    organization.time_zone = time_zone
    organization.save()
    calendar = Calendar.of(organization, "live", kind)
    return read_report(organization, calendar, days=days_of_month(month, today=today))


@pytest.mark.parametrize(
    ("time_zone", "kind", "paid"),
    [
        ("UTC", DayKind.PAID, 100_00),
        ("Europe/Amsterdam", DayKind.PAID, 100_00),
        ("Asia/Kathmandu", DayKind.PAID, 0),
        ("UTC", DayKind.CREATED, 877_00),
        ("Europe/Amsterdam", DayKind.CREATED, 877_00),
        ("Asia/Kathmandu", DayKind.CREATED, 877_00),
    ],
)
def test_month_is_that_of_the_time_zone_and_the_kind_of_day(
    october: Organization, time_zone: str, kind: DayKind, paid: int
) -> None:
    report = report_of(october, kind, time_zone=time_zone)

    assert [row.figures.paid for row in report.by_currency] == [paid]
    assert sum(row.figures.paid for row in report.by_method) == paid
    assert sum(row.figures.paid for row in report.daily) == paid


@pytest.mark.parametrize(
    ("time_zone", "paid"), [("UTC", 777_00), ("Europe/Amsterdam", 777_00), ("Asia/Kathmandu", 877_00)]
)
def test_transfer_counts_in_the_month_in_which_it_was_paid(october: Organization, time_zone: str, paid: int) -> None:
    [row] = report_of(october, month=date(2026, 11, 1), time_zone=time_zone).by_currency

    assert row.figures.paid == paid


def test_net_and_remaining_in_another_currency_are_unknown(october: Organization) -> None:
    [row] = report_of(october, DayKind.CREATED).by_currency

    assert row.members == {
        "currency": "EUR",
        "paid": "877.00",
        "refunded": "40.00",
        "fees": "2.50",
        "net": "97.50",
        "payments": 4,
        "succeeded": 2,
        "netKnown": 1,
        "remainingKnown": 1,
    }


def test_figures_are_grouped_by_method_and_by_day(october: Organization) -> None:
    report = report_of(october, DayKind.CREATED)

    assert [(row.name, row.figures.paid, row.figures.payments) for row in report.by_method] == [
        ("creditcard", 100_00, 3),
        ("ideal", 777_00, 1),
    ]
    assert [(row.name, row.figures.paid) for row in report.daily] == [("2026-10-30", 777_00), ("2026-10-31", 100_00)]


def test_open_payments_are_those_of_the_organization_up_to_the_last_day(october: Organization) -> None:
    others = {"organization": october, "amount": Decimal("1.10")}
    PaymentFactory.create(pending=True, created_at=at(1, 0), **others)
    PaymentFactory.create(authorized=True, created_at=datetime(2020, 1, 1, tzinfo=UTC), amount_currency="CHF", **others)
    PaymentFactory.create(open=True, created_at=at(1, 0, month=11), **others)  # in November
    PaymentFactory.create(open=True, test=True, created_at=at(1, 0), **others)
    PaymentFactory.create(open=True, organization=OrganizationFactory.create(), created_at=at(1, 0))

    assert report_of(october).open_payments == [OpenPayments("CHF", 1, 110), OpenPayments("EUR", 2, 1344)]


@pytest.mark.parametrize(("limit", "is_added_up"), [(1, True), (0, False)])
def test_many_open_payments_are_not_added_up(
    october: Organization, settings: Settings, limit: int, *, is_added_up: bool
) -> None:
    settings.PAYMENTS_SUMMED_PAYMENTS_MAX = limit

    report = report_of(october)

    assert (report.open_payments is not None) is is_added_up
    assert ("more than 0." in report_text(report)) is not is_added_up
    assert (json.loads(report_json(report))["open"] is None) is not is_added_up
    assert ("\nopen," in report_csv(report)) is is_added_up


def test_report_is_never_partial(october: Organization, settings: Settings) -> None:
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0  # no time to sum days

    with pytest.raises(TotalsNotReady) as raised:
        report_of(october, DayKind.CREATED)

    assert raised.value.days == 2  # those with payments


@pytest.mark.once
@pytest.mark.parametrize(
    ("today", "note"),
    [
        (date(2026, 10, 31), ""),
        (date(2026, 11, 1), ""),
        (date(2026, 10, 30), "This month is not over: figures up to 30 October."),
        (date(2026, 10, 1), "This month is not over: figures up to 1 October."),
    ],
)
def test_month_that_is_not_over_says_so(october: Organization, today: date, note: str) -> None:
    report = report_of(october, today=today)

    assert report.note == note
    assert (note in report_text(report)) is True
    document = json.loads(report_json(report))
    assert (document["note"], document["isOver"], document["lastDay"]) == (note, not note, f"{report.last_day}")


@pytest.mark.once
@pytest.mark.parametrize(
    ("text", "month"),
    [
        ("2026-10", OCTOBER),
        ("0001-01", date(1, 1, 1)),
        ("9999-12", date(9999, 12, 1)),
        *(
            (text, None)
            for text in ("", "0000-01", "2026-00", "2026-13", "2026-1", "2026-10-01", "٢٠٢٦-10", "2026-10\n")
        ),
    ],
)
def test_month_has_four_and_two_digits(text: str, month: date | None) -> None:
    assert parse_month(text) == month
    assert month is None or month_of(month) == text


@pytest.mark.once
@pytest.mark.parametrize(
    ("month", "today", "count"),
    [(date(2024, 2, 1), LATER, 29), (OCTOBER, OCTOBER, 1), (OCTOBER, date(2026, 9, 30), 0)],
)
def test_days_of_a_month_end_with_today(month: date, today: date, count: int) -> None:
    assert days_of_month(month, today=today) == [month + timedelta(days=number) for number in range(count)]


@pytest.mark.once
def test_period_has_the_name_of_its_unit() -> None:
    assert [unit.period_of(date(950, 1, 31)) for unit in Unit] == ["0950-01-31", "0950-01", "total"]


TEXT = """\
October 2026: Books (organization 1, live)

By created day, in the time zone Europe/Amsterdam.
A payment counts on the day of createdAt, even if it was paid later.

EUR
  Payments       4  succeeded: 2
  Paid      877.00
  Refunded   40.00  known for 1 of 2
  Fees        2.50  known for 1 of 2
  Net        97.50  known for 1 of 2

Method     Cur Succeeded   Paid Refunded Fees   Net
creditcard EUR         1 100.00    40.00 2.50 97.50
ideal      EUR         1 777.00        -    -     -

Day        Cur Succeeded   Paid Refunded  Fees    Net
2026-10-31 EUR         2 877.00   *40.00 *2.50 *97.50

- known for none of the payments, * known for some of them only

Still open, of the payments created up to 2026-10-31:
Currency Payments Amount
EUR             1  12.34
"""


@pytest.mark.once
def test_text_is_aligned(october: Organization) -> None:
    text = report_text(report_of(october, DayKind.CREATED, time_zone="Europe/Amsterdam"))

    assert text == TEXT


@pytest.mark.once
def test_text_of_large_amounts_has_80_columns(organization: Organization) -> None:
    PaymentFactory.create(
        organization=organization,
        banktransfer=True,
        amount=Decimal("9999999.99"),
        amount_net=Decimal("-9999999.99"),
        amount_net_currency="EUR",
        created_at=at(31, 10),
    )

    text = report_text(report_of(organization))

    assert "-9,999,999.99" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.once
def test_text_cannot_control_a_terminal(organization: Organization) -> None:
    organization.name = "Books\u202e"

    assert "Books\\u202e (organization 1, live)" in report_text(report_of(organization))


@pytest.mark.once
def test_csv_has_a_line_for_each_figure(october: Organization) -> None:
    lines = list(csv.DictReader(io.StringIO(report_csv(report_of(october, DayKind.CREATED)))))

    assert [(line["section"], line["name"], line["paid"], line["openAmount"]) for line in lines] == [
        ("total", "2026-10", "877.00", ""),
        ("method", "creditcard", "100.00", ""),
        ("method", "ideal", "777.00", ""),
        ("day", "2026-10-30", "777.00", ""),
        ("day", "2026-10-31", "100.00", ""),
        ("open", "", "", "12.34"),
    ]
    assert ",".join(lines[0].values()) == "total,2026-10,EUR,877.00,40.00,2.50,97.50,4,2,1,1,,1,live,created,UTC"
    assert ",".join(lines[0]) == (
        "section,name,currency,paid,refunded,fees,net,payments,succeeded,netKnown,remainingKnown,openAmount,"
        "organizationId,mode,by,timeZone"
    )


@pytest.mark.once
def test_csv_is_protected_from_formulas(organization: Organization) -> None:
    PaymentFactory.create(organization=organization, created_at=datetime(2026, 10, 31, tzinfo=UTC), method="-1-1")

    assert "method,'-1-1,EUR" in report_csv(report_of(organization, DayKind.CREATED))


@pytest.mark.once
def test_json_has_decimal_strings(october: Organization) -> None:
    document = json.loads(report_json(report_of(october)))

    row = report_of(october).by_currency[0].members
    assert row["paid"] == "100.00"
    assert document == {
        "organizationId": "1",
        "mode": "live",
        "month": "2026-10",
        "by": "paid",
        "timeZone": "UTC",
        "lastDay": "2026-10-31",
        "isOver": True,
        "note": "",
        "totals": [row],
        "methods": [{"method": "creditcard", **row}],
        "days": [{"day": "2026-10-31", **row}],
        "open": [{"currency": "EUR", "payments": 1, "openAmount": "12.34"}],
    }
