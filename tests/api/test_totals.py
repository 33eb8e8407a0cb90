"""GET /v2/payments/totals: sums by period and currency, in the organization's time zone."""

from contextlib import ExitStack
from datetime import date, timedelta
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from payments.api.errors import InvalidParameter
from payments.api.totals import parse_totals_parameters
from payments.models import DayKind, Organization, Payment, SummedDay
from payments.models.days import days_between
from payments.runtime.process import process
from payments.totals.report import Row
from tests.support.api import BROWSER, Api, payment_ids
from tests.support.factories import ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.scale import SEED, times
from tests.totals.october import at, create_october
from tests.totals.reference import DAYS, FIRST, ZONES, Writer, records, reference

pytestmark = pytest.mark.also("citus")

TOTALS = "/v2/payments/totals"
OCTOBER = "from=2026-10-01&to=2026-10-31"
BASE = "http://testserver"


def fetch(api: Api, query: str = OCTOBER) -> Any:
    response = api.send("GET", f"{TOTALS}?{query}")
    assert response.status_code == 200, response.content
    return response.json()


def rows_of(document: Any) -> Any:
    return document["_embedded"]["totals"]


def move_to(organization: Organization, time_zone: str) -> None:
    organization.time_zone = time_zone
    organization.save()


@pytest.fixture
def october(organization: Organization) -> Organization:
    create_october(organization)
    return organization


def row(period: str, amounts: str, counts: str, currency: str = "EUR") -> dict[str, Any]:
    """Return a row with the amounts and the counts in their order."""
    names = ("paid", "refunded", "fees", "net")
    known = ("payments", "succeeded", "netKnown", "remainingKnown")
    values = {
        **dict(zip(names, amounts.split(), strict=True)),
        **dict(zip(known, map(int, counts.split()), strict=True)),
    }
    return {"period": period, "currency": currency, **values}


def test_document_is_complete(api: Api, october: Organization) -> None:
    document = fetch(api)

    assert document == {
        "count": 1,
        "timeZone": "UTC",
        "_embedded": {"totals": [row("total", "100.00 40.00 2.50 97.50", "2 1 1 1")]},
        "_links": {
            "self": {
                "href": f"{BASE}{TOTALS}?from=2026-10-01&to=2026-10-31&by=total&day=paid",
                "type": "application/hal+json",
            },
            "payments": {
                "href": f"{BASE}/v2/payments?paidAt%5Bgte%5D=2026-10-01T00%3A00%3A00.000"
                "&paidAt%5Blt%5D=2026-11-01T00%3A00%3A00.000",
                "type": "application/hal+json",
            },
            "documentation": {"href": f"{BASE}/docs/reference/#get-totals", "type": "text/html"},
        },
    }
    assert list(document) == ["count", "timeZone", "_embedded", "_links"]
    assert list(rows_of(document)[0]) == [
        *("period", "currency", "paid", "refunded", "fees", "net"),
        *("payments", "succeeded", "netKnown", "remainingKnown"),
    ]


@pytest.mark.parametrize(
    ("time_zone", "query", "expected"),
    [
        ("Europe/Amsterdam", "day=paid&by=total", [row("total", "100.00 40.00 2.50 97.50", "2 1 1 1")]),
        ("Asia/Kathmandu", "day=paid&by=total", [row("total", "0.00 0.00 0.00 0.00", "1 0 0 0")]),
        ("UTC", "day=created&by=month", [row("2026-10", "877.00 40.00 2.50 97.50", "4 2 1 1")]),
        (
            "UTC",
            "day=created&by=day",
            [
                row("2026-10-30", "777.00 0.00 0.00 0.00", "1 1 0 0"),
                row("2026-10-31", "100.00 40.00 2.50 97.50", "3 1 1 1"),
            ],
        ),
        ("Europe/Amsterdam", "day=created&by=day", [row("2026-10-31", "877.00 40.00 2.50 97.50", "4 2 1 1")]),
        ("Asia/Kathmandu", "day=created&by=day", [row("2026-10-31", "877.00 40.00 2.50 97.50", "4 2 1 1")]),
    ],
)
def test_days_are_those_of_the_time_zone(
    api: Api, october: Organization, time_zone: str, query: str, expected: Any
) -> None:
    move_to(october, time_zone)

    document = fetch(api, f"{OCTOBER}&{query}")

    assert (document["timeZone"], document["count"]) == (time_zone, len(expected))
    assert rows_of(document) == expected


def test_rows_are_ordered_by_period_then_currency(api: Api, organization: Organization, october: Organization) -> None:
    PaymentFactory.create(organization=organization, amount_currency="CHF", created_at=at(31, 12))

    rows = rows_of(fetch(api, "from=2026-10-01&to=2026-11-30&by=month"))

    assert [(row["period"], row["currency"], row["paid"]) for row in rows] == [
        ("2026-10", "CHF", "10.00"),
        ("2026-10", "EUR", "100.00"),
        ("2026-11", "EUR", "777.00"),
    ]


def test_filters_select_payments_and_are_repeated_in_links(api: Api, october: Organization) -> None:
    document = fetch(api, "from=2026-10-01&to=2026-10-31&day=created&method[]=paypal&method[]=ideal&currency=EUR")

    assert [(row["paid"], row["payments"]) for row in rows_of(document)] == [("777.00", 1)]
    assert document["_links"]["self"]["href"].partition("?")[2] == (
        "from=2026-10-01&to=2026-10-31&by=total&day=created&method=ideal%2Cpaypal&currency=EUR"
    )
    assert fetch(api, document["_links"]["self"]["href"].partition("?")[2]) == document
    assert rows_of(fetch(api, f"{OCTOBER}&currency=USD")) == []


@pytest.mark.parametrize("time_zone", ["UTC", "Europe/Amsterdam", "Asia/Kathmandu"])
@pytest.mark.parametrize("day", ["paid", "created"])
def test_link_leads_to_the_payments_of_the_figures(api: Api, october: Organization, time_zone: str, day: str) -> None:
    move_to(october, time_zone)
    document = fetch(api, f"{OCTOBER}&day={day}")

    payments = api.follow(document["_links"]["payments"]["href"]).json()

    assert payments["count"] == rows_of(document)[0]["payments"]


def test_bounds_of_the_link_are_times_in_utc(api: Api, october: Organization) -> None:
    move_to(october, "Europe/Amsterdam")

    href = fetch(api, f"{OCTOBER}&currency=EUR")["_links"]["payments"]["href"]

    assert href == (
        f"{BASE}/v2/payments?currency=EUR&paidAt%5Bgte%5D=2026-09-30T22%3A00%3A00.000"
        "&paidAt%5Blt%5D=2026-10-31T23%3A00%3A00.000"
    )
    assert payment_ids(api.follow(href).json()) == ["pt_Failed", "pt_Hundred"]


@pytest.mark.extended
@pytest.mark.parametrize("by", ["day", "month", "total"])
def test_rows_equal_those_of_an_export_after_random_writes(api: Api, organization: Organization, by: str) -> None:
    random = Random(SEED)  # noqa: S311  repeatable, not secret
    writer = Writer(random, api.key.access)
    for _ in range(times(8, long=200)):
        writer.write()
        move_to(organization, random.choice(ZONES))
        kind, first = random.choice(list(DayKind)), FIRST + timedelta(days=random.randrange(DAYS))
        last = first + timedelta(days=random.choice((0, 20, 70, 300)))

        rows = rows_of(fetch(api, f"from={first}&to={last}&by={by}&day={kind.value}"))

        expected = []
        for period in sorted({name_of(day, by) for day in days_between(first, last)}):
            days = [day for day in days_between(first, last) if name_of(day, by) == period]
            figures = reference(records(api.key.access), kind, organization.zone, first=days[0], last=days[-1])
            expected += [{"period": period, **Row(period, figures[name]).members} for name in sorted(figures)]
        assert rows == expected


def name_of(day: date, by: str) -> str:
    return "total" if by == "total" else f"{day}"[: len("2026-10")] if by == "month" else f"{day}"


def test_key_sees_only_its_organization_and_mode(api: Api, october: Organization) -> None:
    test_key = ApiKeyFactory.create(organization=october, mode="test")
    other_key = ApiKeyFactory.create(organization=OrganizationFactory.create(id=2))

    assert rows_of(fetch(Api(api.client, test_key))) == rows_of(fetch(Api(api.client, other_key))) == []


DAY_RULE = "must be a day such as 2026-10-31."


@pytest.mark.once
@pytest.mark.parametrize(
    ("query", "field", "detail"),
    [
        ("", "from", f"from {DAY_RULE}"),
        ("to=2026-10-31", "from", f"from {DAY_RULE}"),
        ("from=2026-10-01", "to", f"to {DAY_RULE}"),
        ("from=&to=2026-10-31", "from", f"from {DAY_RULE}"),
        ("from=2026-02-30&to=x", "from", f"from {DAY_RULE}"),
        ("from=2026-10-01T00:00&to=2026-10-31", "from", f"from {DAY_RULE}"),
        ("from=0000-10-01&to=2026-10-31", "from", f"from {DAY_RULE}"),
        ("from=2026-10-02&to=2026-10-01&by=x", "to", "to must be from 0 to 1830 days after from."),
        ("from=2026-01-01&to=2031-01-06", "to", "to must be from 0 to 1830 days after from."),
        ("from=2026-01-01&to=2027-01-03&by=day", "to", "to must be from 0 to 366 days after from if by is day."),
        (f"{OCTOBER}&by=week&day=x", "by", "by must be day, month or total."),
        (f"{OCTOBER}&by=", "by", "by must be day, month or total."),
        (f"{OCTOBER}&day=Paid&method=!", "day", "day must be paid or created."),
        (f"{OCTOBER}&method=!", "method", "method must be a word of"),
        (f"{OCTOBER}&currency=", "currency", "currency must be an ISO 4217 currency code"),
        (f"{OCTOBER}&method=&currency=", "method", "method must be a word of"),
        ("from=x&status=open", "status", "Unknown parameter."),
        ("from=x&limit=20", "limit", "Unknown parameter."),
        ("from=x&createdAt[gte]=2026-10-01", "createdAt[gte]", "Unknown parameter."),
        ("from=x&metadata=a:b", "metadata", "Unknown parameter."),
        (f"{OCTOBER}&to=2026-10-31", "to", "to must occur only once."),
    ],
)
def test_first_invalid_parameter_is_refused(query: str, field: str, detail: str) -> None:
    with pytest.raises(InvalidParameter) as raised:
        parse_totals_parameters(query)

    assert raised.value.field == field
    assert str(raised.value.detail).startswith(detail)


@pytest.mark.once
@pytest.mark.parametrize("query", ["", OCTOBER])
def test_checks_of_all_requests_come_first(api: Api, query: str) -> None:
    path = f"{TOTALS}?{query}"

    assert api.send("GET", path, Accept="text/css").status_code == 406
    assert api.client.get(path).status_code == 401
    assert api.get(TOTALS, from_="x").status_code == 400
    assert api.send("POST", path).status_code == 405
    assert api.client.options(path).status_code == 200


@pytest.mark.once
@pytest.mark.parametrize(
    ("time_zone", "query"),
    [
        ("Pacific/Kiritimati", "from=0001-01-01&to=0001-01-01"),
        ("Etc/GMT+12", "from=9999-12-31&to=9999-12-31"),
        ("UTC", "from=2026-01-01&to=2031-01-05"),
        ("UTC", "from=2026-01-01&to=2027-01-02&by=day"),
    ],
)
def test_longest_and_extreme_ranges_are_valid(api: Api, october: Organization, time_zone: str, query: str) -> None:
    move_to(october, time_zone)

    document = fetch(api, query)

    assert api.follow(document["_links"]["payments"]["href"]).status_code == 200


def test_days_without_payments_are_not_stored(api: Api, october: Organization) -> None:
    fetch(api, "from=2025-10-01&to=2030-10-01")

    days = sorted(SummedDay.objects.values_list("day", flat=True))

    assert (f"{days[0]}", f"{days[-1]}") == ("2026-10-31", "2026-11-05")


def test_head_has_the_headers_of_get(api: Api, october: Organization) -> None:
    get, head = (api.send(method, f"{TOTALS}?{OCTOBER}") for method in ("GET", "HEAD"))

    assert (head.status_code, head.content, head["ETag"]) == (200, b"", get["ETag"])


def test_known_etag_gets_a_304_without_reading_totals(api: Api, october: Organization) -> None:
    etag = api.send("GET", f"{TOTALS}?{OCTOBER}")["ETag"]

    with CaptureQueriesContext(connection) as queries:
        response = api.send("GET", f"{TOTALS}?{OCTOBER}", If_None_Match=etag)

    assert (response.status_code, response["ETag"]) == (304, etag)
    assert "summed_day" not in str(queries.captured_queries)


def test_etag_changes_with_the_figures(api: Api, october: Organization) -> None:
    etag = api.send("GET", f"{TOTALS}?{OCTOBER}")["ETag"]

    Payment.objects.filter(id="pt_Failed").update(status="succeeded")
    response = api.send("GET", f"{TOTALS}?{OCTOBER}", If_None_Match=etag)

    assert response.status_code == 200
    assert [row["paid"] for row in rows_of(response.json())] == ["9100.00"]


def test_etag_changes_with_the_time_zone(api: Api, october: Organization) -> None:
    etag = api.send("GET", f"{TOTALS}?{OCTOBER}")["ETag"]

    move_to(october, "Asia/Kathmandu")
    response = api.send("GET", f"{TOTALS}?{OCTOBER}", If_None_Match=etag)

    assert response.status_code == 200
    assert (response.json()["timeZone"], rows_of(response.json())[0]["paid"]) == ("Asia/Kathmandu", "0.00")


def test_figures_that_are_not_ready_get_503_without_figures(
    api: Api, october: Organization, settings: Settings
) -> None:
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0

    response = api.send("GET", f"{TOTALS}?{OCTOBER}")

    assert (response.status_code, response["Retry-After"]) == (503, "1")
    assert response.json()["detail"].startswith("The figures are being computed.")


@pytest.mark.once
def test_key_that_uses_its_share_gets_only_stored_figures(api: Api, october: Organization, settings: Settings) -> None:
    fetch(api)
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0.05  # a request for the share waits for a part of this

    with ExitStack() as stack:
        for _ in range(process.shares.filters_max):
            stack.enter_context(process.shares.filters(api.key.digest))
        stored, missing = (api.send("GET", f"{TOTALS}?{query}") for query in (OCTOBER, f"{OCTOBER}&day=created"))

    assert (stored.status_code, missing.status_code) == (200, 429)


@pytest.mark.once
def test_browser_gets_a_page(api: Api, october: Organization, settings: Settings) -> None:
    settings.PAYMENTS_BROWSABLE_API = True

    pages = [api.send("GET", f"{TOTALS}?{query}", Accept=BROWSER) for query in (OCTOBER, "")]

    assert [page.status_code for page in pages] == [200, 400]
    assert "877.00" not in pages[0].content.decode()
    assert "100.00" in pages[0].content.decode()
