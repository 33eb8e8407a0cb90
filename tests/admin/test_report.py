"""The page with the report of a month, its links, and its files."""

import csv
import io
import json
import re
from datetime import date
from html import unescape

import pytest
from django.test import Client
from pytest_django import Settings

from payments.admin.periods import current_day
from payments.models import Organization
from payments.totals.figures import DEFINITIONS
from payments.totals.report import month_of
from tests.support.admin_site import create_staff
from tests.support.factories import PaymentFactory
from tests.totals.october import at, create_october

pytestmark = pytest.mark.also("citus")

REPORT = "/admin/report/"
OCTOBER = {"organization": "1", "mode": "live", "month": "2026-10"}


@pytest.fixture
def october(organization: Organization) -> Organization:
    create_october(organization)
    return organization


def page_of(client: Client, **changes: str) -> str:
    response = client.get(REPORT, {**OCTOBER, **changes})
    assert response.status_code == 200
    return unescape(response.content.decode())


def hrefs(page: str, text: str) -> list[str]:
    return re.findall(rf'<a href="([^"]*)"[^>]*>{re.escape(text)}</a>', page)


def amount(page: str, name: str) -> str:
    """Return a figure of the first currency."""
    [value] = re.findall(rf"<div><dt[^>]*>{name}</dt><dd>([^<]*)</dd>", page)
    return str(value)


@pytest.mark.parametrize(
    ("time_zone", "by", "figures"),
    [
        ("UTC", "paid", ("100.00", "2")),
        ("Asia/Kathmandu", "paid", ("0.00", "1")),
        ("Europe/Amsterdam", "created", ("877.00", "4")),
    ],
)
def test_page_has_the_figures(
    admin_client: Client, october: Organization, time_zone: str, by: str, figures: tuple[str, str]
) -> None:
    october.time_zone = time_zone
    october.save()

    page = page_of(admin_client, by=by)

    assert (amount(page, "Paid"), amount(page, "Payments")) == figures
    assert f"in the time zone {time_zone}." in page
    assert "1 of 12.34 EUR." in page
    assert all(definition in page for definition in DEFINITIONS.values())


@pytest.mark.parametrize(("by", "text"), [("paid", "Credit card"), ("created", "iDEAL"), ("created", "2026-10-30")])
def test_figures_lead_to_their_payments(admin_client: Client, october: Organization, by: str, text: str) -> None:
    page = page_of(admin_client, by=by)
    [href] = hrefs(page, text)

    listed = admin_client.get(href)

    assert listed.status_code == 200
    assert listed.context["form"].errors == {}
    figures = re.findall(rf'{text}</a></th><td class="amount">(\d+)', page)
    assert [f"{len(listed.context['payments'])}"] == figures


def test_currencies_have_sections_the_most_frequent_first(admin_client: Client, october: Organization) -> None:
    PaymentFactory.create(organization=october, amount_currency="CHF", created_at=at(31, 12))

    page = page_of(admin_client)

    assert re.findall(r'<section aria-label="(\w+)">', page) == ["EUR", "CHF"]


def test_month_without_payments_says_so(admin_client: Client, october: Organization) -> None:
    assert "No payments in this month." in page_of(admin_client, month="2020-01")


def test_files_have_the_figures_of_the_page(admin_client: Client, october: Organization) -> None:
    text, table, document = (admin_client.get(REPORT, {**OCTOBER, "format": name}) for name in ("text", "csv", "json"))

    assert "Paid      100.00" in text.content.decode()
    assert next(csv.DictReader(io.StringIO(table.content.decode())))["paid"] == "100.00"
    assert json.loads(document.content)["totals"][0]["paid"] == "100.00"
    assert [response.headers["Content-Disposition"] for response in (text, table, document)] == [
        f'attachment; filename="report-1-live-2026-10-paid.{suffix}"' for suffix in ("txt", "csv", "json")
    ]


def test_missing_figures_reload_the_page_and_refuse_files(
    admin_client: Client, october: Organization, settings: Settings
) -> None:
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0

    page = admin_client.get(REPORT, OCTOBER)
    file = admin_client.get(REPORT, {**OCTOBER, "format": "csv"})

    assert (page.status_code, page.headers["Refresh"]) == (200, "1")
    assert "are being computed. This page loads again by itself." in page.content.decode()
    assert "Paid" not in page.content.decode().partition("are being computed")[2]
    assert (file.status_code, file.headers["Retry-After"]) == (503, "1")
    assert b"100.00" not in file.content


@pytest.mark.once
def test_complete_page_does_not_reload(admin_client: Client, october: Organization) -> None:
    assert "Refresh" not in admin_client.get(REPORT, OCTOBER).headers


@pytest.mark.once
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"month": "2026-13"}, "Month: Enter a month such as 2026-10, in the years 1900 to 9998."),
        ({"month": "1899-12"}, "Month: Enter a month such as 2026-10, in the years 1900 to 9998."),
        ({"month": "9998-12"}, "Month: Enter a month that has begun."),
        ({"by": "x"}, "Days: Select a valid choice."),
        ({"organization": "2"}, "Organization: Choose an organization in the header. This one does not exist."),
    ],
)
def test_invalid_field_is_named(
    admin_client: Client, october: Organization, changes: dict[str, str], error: str
) -> None:
    assert f'role="alert">{error}' in page_of(admin_client, **changes)
    assert admin_client.get(REPORT, {**OCTOBER, **changes, "format": "csv"}).status_code == 400


@pytest.mark.once
def test_unknown_format_is_refused(admin_client: Client, october: Organization) -> None:
    assert admin_client.get(REPORT, {**OCTOBER, "format": "pdf"}).status_code == 400


@pytest.mark.once
def test_pages_lead_to_the_months_before_and_after(admin_client: Client, october: Organization) -> None:
    page = page_of(admin_client, by="created")
    present = page_of(admin_client, month=month_of(current_day()))

    assert hrefs(page, "← Previous month") == ["?organization=1&mode=live&month=2026-09&by=created"]
    assert hrefs(page, "Next month →") == ["?organization=1&mode=live&month=2026-11&by=created"]
    assert hrefs(present, "Next month →") == []
    assert "This month is not over" in present or (current_day().replace(day=1) - date.resolution).day == 1


@pytest.mark.once
def test_default_is_the_last_month_by_paid_day(admin_client: Client, october: Organization) -> None:
    form = admin_client.get(REPORT).context["form"]

    assert form.cleaned_data["month"] < current_day().replace(day=1)
    assert (form.cleaned_data["by"], form.cleaned_data["mode"]) == ("paid", "live")


@pytest.mark.once
@pytest.mark.parametrize(("permission", "status"), [("view_payment", 200), ("view_organization", 403)])
def test_page_needs_the_permission_to_view_payments(
    client: Client, october: Organization, permission: str, status: int
) -> None:
    client.force_login(create_staff("clerk", permission))

    assert client.get(REPORT, OCTOBER).status_code == status
    assert client.get(REPORT, {**OCTOBER, "format": "csv"}).status_code == status
    assert (REPORT in client.get("/admin/").content.decode()) is (status == 200)


@pytest.mark.once
def test_page_without_a_session_leads_to_the_login(client: Client, october: Organization) -> None:
    response = client.get(REPORT, OCTOBER)

    assert (response.status_code, response.headers["Location"].partition("?")[0]) == (302, "/admin/login/")


@pytest.mark.once
def test_page_without_organizations_says_what_to_do(admin_client: Client) -> None:
    assert "There are no organizations yet." in admin_client.get(REPORT).content.decode()


@pytest.mark.once
def test_name_of_the_organization_is_escaped(admin_client: Client, october: Organization) -> None:
    october.name = "<b>Books\u202e"
    october.save()

    content = admin_client.get(REPORT, OCTOBER).content.decode()

    assert '<bdi>&lt;b&gt;Books<bdi class="control"' in content
