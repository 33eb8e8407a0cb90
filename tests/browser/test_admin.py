"""Tasks of staff in the admin, done in a browser."""

import csv
import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.utils.text import slugify
from playwright.sync_api import Page, expect

from payments.demo import SHOPS
from payments.models.choices import method_label
from tests.browser.conftest import Staffed
from tests.browser.pages import LOOKS, overflow, page_problems, set_look, violations
from tests.support.commands import manage

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.xdist_group("browser"), pytest.mark.extended]

LIST = "/admin/payments/payment/"


def ids(page: Page) -> list[str]:
    """Return the IDs of the payments on a page."""
    return page.locator("th.id a").all_inner_texts()


def exported(staffed: Staffed, **selection: str) -> str:
    """Return the same payments as `manage.py export_payments` writes them."""
    return staffed.service.exported(organization=staffed.organization, mode="live", **selection)


def exported_ids(staffed: Staffed, **selection: str) -> list[str]:
    return [json.loads(line)["id"] for line in exported(staffed, **selection).splitlines()]


def click(page: Page, link: str) -> None:
    with page.expect_navigation():
        page.get_by_role("link", name=link, exact=True).first.click()


def turn_page(page: Page, relation: str) -> bool:
    """Go to the next or the previous page. Return whether there is one."""
    link = page.locator(f'a[rel="{relation}"]').first
    if not link.count():
        return False
    with page.expect_navigation():
        link.click()
    return True


def press(page: Page, button: str) -> None:
    with page.expect_navigation():
        page.get_by_role("button", name=button, exact=True).click()


def test_login_refuses_a_wrong_password_and_opens_the_overview(staffed: Staffed) -> None:
    with staffed.anonymous_page() as page:
        staffed.log_in(page, password="wrong")
        expect(page.get_by_text("Wrong user name or password")).to_be_visible()

        staffed.log_in(page)
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"{SHOPS[0].name} · ")


def read_overview(page: Page, path: str) -> None:
    """Open the overview and wait until all of its days are summed: the page loads again by itself."""
    page.goto(path)
    expect(page.get_by_role("status")).to_have_count(0)


def test_chart_has_the_figures_of_the_table(staffed: Staffed) -> None:
    with staffed.page() as page:
        read_overview(page, "/admin/")
        columns = page.locator(".plot a text").all_text_contents()
        page.get_by_text("Figures per day").click()
        rows = page.get_by_role("region", name="Figures per day").get_by_role("row").all_inner_texts()

        days = [row.split("\t") for row in rows[1:]]
        assert columns == [f"{day}: {paid} EUR{before}: {before_paid}" for day, paid, before, before_paid in days]
        assert len(days) == 30

        text = page.locator(".plot a text").nth(3)
        expect(text).to_have_css("opacity", "0")
        page.locator(".plot .column").nth(3).hover()
        expect(text).to_have_css("opacity", "1")


def test_menus_show_other_figures_at_once(staffed: Staffed) -> None:
    title = page_title(SHOPS[1].name)

    with staffed.page() as page:
        read_overview(page, f"/admin/?organization={SHOPS[1].id}&mode=live")
        for value in ("last-week", "custom"):
            with page.expect_navigation():
                page.get_by_label("Period", exact=True).select_option(value)
            expect(page.get_by_role("heading", level=1)).to_have_text(title)
        assert len(page.get_by_label("From", exact=True).input_value()) == len("2026-01-01")

        page.get_by_label("From", exact=True).fill("2026-01-01")
        press(page, "Show")
        expect(page.get_by_role("heading", level=1)).to_contain_text("1 January ")
        with page.expect_navigation():
            page.get_by_label("Period", exact=True).select_option("month")
        assert "since" not in page.url
        page.go_back()
        expect(page.get_by_label("Period", exact=True)).to_have_value("custom")


def test_keyboard_chooses_before_other_figures_are_shown(staffed: Staffed) -> None:
    with staffed.page() as page:
        read_overview(page, f"/admin/?organization={staffed.organization}&mode=live&period=today")
        period = page.get_by_label("Period", exact=True)
        period.focus()
        for _ in range(2):
            page.keyboard.press("ArrowDown")
        expect(period).to_have_value("7d")
        assert "period=today" in page.url

        with page.expect_navigation():
            press(page, "Show")
        assert "period=7d" in page.url


def test_escape_closes_a_menu(staffed: Staffed) -> None:
    with staffed.page() as page:
        page.goto("/admin/payments/payment/")
        for name in (SHOPS[0].name, "+ Amount", "Export", "Columns"):
            summary = page.locator("summary", has_text=name)
            summary.click()
            expect(page.locator("details[open]")).to_have_count(1)  # the menu before has closed
            page.keyboard.press("Tab")
            page.keyboard.press("Escape")
            expect(summary).to_be_focused()
            expect(page.locator("details[open]")).to_have_count(0)
            summary.click()


def page_title(name: str) -> re.Pattern[str]:
    return re.compile(rf"^{name} · [0-9A-Za-z ]+ · (Live|Test)$")


def test_period_can_be_chosen_without_scripts(staffed: Staffed) -> None:
    with staffed.page(java_script_enabled=False) as page:
        read_overview(page, f"/admin/?organization={staffed.organization}&mode=test&period=7d")
        press(page, "Live")
        expect(page.get_by_label("Period", exact=True)).to_have_value("7d")
        title = page.get_by_role("heading", level=1).inner_text()
        assert title.endswith("· Live")

        page.get_by_label("Period", exact=True).select_option("custom")
        press(page, "Show")
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        page.get_by_label("To", exact=True).fill("2020-01-01")
        press(page, "Show")
        expect(page.get_by_role("alert")).to_have_text("To: Enter a date on or after From.")
        page.get_by_label("Period", exact=True).select_option("month")
        press(page, "Show")
        expect(page.get_by_role("heading", level=1)).to_have_text(page_title(SHOPS[0].name))


def test_numbers_rows_and_bars_lead_to_their_payments(staffed: Staffed) -> None:
    with staffed.page() as page:
        read_overview(page, f"/admin/?organization={staffed.organization}&mode=live&period=7d")
        bars = page.locator(".plot a")
        text = bars.nth(2).locator("text").text_content() or ""
        with page.expect_navigation():
            bars.nth(2).locator(".column").click()
        assert text.partition(": ")[2].split()[0] in page.get_by_role("region", name="Totals").inner_text()
        assert page.get_by_label("From", exact=True).input_value() == page.get_by_label("To", exact=True).input_value()

        page.go_back()
        row = page.get_by_role("row", name="Pending")
        number = int(row.get_by_role("cell").nth(1).inner_text())
        with page.expect_navigation():
            row.get_by_role("cell").nth(1).click(force=True)  # the link of the row covers the cell
        assert len(ids(page)) == number
        assert set(page.locator(".label.pending").all_inner_texts()) <= {"Pending"}


def test_report_of_a_month_leads_to_its_payments_and_files(staffed: Staffed) -> None:
    with staffed.page() as page:
        read_overview(page, f"/admin/report/?organization={staffed.organization}&mode=test")
        click(page, "← Previous month")
        expect(page.get_by_role("status")).to_have_count(0)
        row = page.get_by_role("region", name="EUR by Method").get_by_role("row").last
        method, count, *_ = row.inner_text().split("\t")
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        lines = list(csv.DictReader(download.value.path().read_text().splitlines()))
        with page.expect_navigation():
            row.get_by_role("link").click()

        counts = {method_label(line["name"]): line["succeeded"] for line in lines if line["currency"] == "EUR"}
        assert counts[method] == count
        assert len(ids(page)) == int(count)


def test_charts_of_long_periods_fit_a_phone(staffed: Staffed) -> None:
    today = datetime.now(UTC).date()
    year = f"since={today - timedelta(days=365)}&until={today - timedelta(days=1)}"

    with staffed.page(width=390) as page:
        for query, bars_min in (("period=90d", 90), (year, 53)):
            read_overview(page, f"/admin/?{query}")
            chart = page.locator(".plot > svg")
            columns = chart.locator("a .column").evaluate_all(
                "(rects) => rects.map((rect) => rect.getBoundingClientRect())"
            )
            box = chart.bounding_box()
            assert box
            assert bars_min <= len(columns) <= 92
            assert all(column["width"] >= 2.5 for column in columns)
            assert box["x"] + box["width"] <= 390


def test_overview_prints_on_one_page(staffed: Staffed) -> None:
    with staffed.page() as page:
        read_overview(page, f"/admin/?organization={staffed.organization}&mode=live&period=90d")

        pages = re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))

    assert len(pages) == 1


def test_overview_waits_for_days_while_an_import_holds_a_lock(staffed: Staffed) -> None:
    path = f"/admin/?organization={SHOPS[2].id}&mode=test"

    with staffed.page() as page:
        with organization_locked(staffed.service.database_url, organization=SHOPS[2].id):
            page.goto(path)
            expect(page.get_by_role("status")).to_contain_text("Figures for 30 days are being computed.")
        expect(page.get_by_role("status")).to_have_count(0)
        expect(page.locator("figure").first).to_be_visible()


@contextmanager
def organization_locked(database_url: str, *, organization: int) -> Iterator[None]:
    """Hold the lock that an import holds when it ends."""
    if database_url.startswith("sqlite"):
        with closing(sqlite3.connect(urlsplit(database_url).path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
    else:
        with psycopg.connect(database_url) as connection:
            connection.execute("SELECT 1 FROM payments_organization WHERE id = %s FOR NO KEY UPDATE", [organization])
            yield


def test_filtered_list_can_be_paged_to_its_end_and_back(staffed: Staffed) -> None:
    expected = exported_ids(staffed, status="expired")

    with staffed.page() as page:
        page.goto(LIST)
        page.get_by_text("+ Status").click()
        page.get_by_label("Expired").check()
        press(page, "Apply")
        forward = [ids(page)]
        while turn_page(page, "next"):
            forward.append(ids(page))
        back = [ids(page)]
        while turn_page(page, "prev"):
            back.append(ids(page))

        assert [payment_id for page_ids in forward for payment_id in page_ids] == expected
        assert back == forward[::-1]
        expect(page.get_by_label("Expired", exact=True)).to_be_checked()
        assert len(forward) > 3

        click(page, "Clear all")
        expect(page.get_by_label("Expired", exact=True)).not_to_be_checked()


def test_search_finds_payments_by_description_customer_and_id(staffed: Staffed) -> None:
    payments = [json.loads(line) for line in exported(staffed).splitlines()]
    payment = next(
        payment for payment in payments if "customerId" in payment and payment["description"].startswith("Order")
    )

    with staffed.page() as page:
        page.goto(LIST)
        page.get_by_label("Search", exact=True).fill(payment["description"])
        press(page, "Search")
        assert payment["id"] in ids(page)
        descriptions = page.locator("td.description").all_inner_texts()
        assert all(description.startswith(payment["description"]) for description in descriptions)

        with page.expect_navigation():
            page.locator(f"tr:has-text('{payment['id']}') td.customer a").click()
        assert payment["id"] in ids(page)
        customers = {other["id"] for other in payments if other.get("customerId") == payment["customerId"]}
        assert set(ids(page)) == customers

        page.get_by_label("Search", exact=True).fill(payment["id"])
        press(page, "Search")
        expect(page.get_by_role("heading", level=1)).to_contain_text(payment["amount"]["value"])


def test_payment_page_copies_the_api_response(staffed: Staffed) -> None:
    with staffed.page(permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(LIST)
        [payment_id, *_] = ids(page)
        click(page, payment_id)
        page.get_by_text("JSON of the API").click()
        page.get_by_role("button", name="Copy JSON").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
        key = staffed.service.create_api_key(organization=staffed.organization, mode="live")
        response = page.request.get(copied["_links"]["self"]["href"], headers={"Authorization": f"Bearer {key}"})

        assert response.json() == copied
        assert copied["id"] == payment_id
        expect(page.get_by_role("region", name="Timeline")).to_contain_text("Created")
        with page.expect_navigation():
            page.get_by_label("Breadcrumbs").get_by_role("link", name="Payments").click()
        assert payment_id in ids(page)


@pytest.mark.parametrize(("button", "suffix"), [("Raw CSV (imports again)", "csv"), ("JSON Lines", "jsonl")])
def test_export_is_saved_as_one_file(staffed: Staffed, tmp_path: Path, button: str, suffix: str) -> None:
    expected = exported(staffed)

    with staffed.page() as page:
        text = save_export(page, tmp_path, button=button)

    lines = text.splitlines()
    assert len(lines) > 5000
    if suffix == "jsonl":
        assert text == expected
    else:
        assert [line.partition(",")[0] for line in lines[1:]] == exported_ids(staffed)


def save_export(page: Page, directory: Path, *, button: str, query: str = "") -> str:
    """Export the list, and return the content of the file. Its name is in the directory."""
    page.goto(f"{LIST}?{query}")
    page.get_by_text("Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    file = directory / download.value.suggested_filename
    download.value.save_as(file)
    expect(page.get_by_role("status")).to_contain_text("B, complete")
    return file.read_text(encoding="utf-8-sig")


def test_bookkeepers_file_has_the_chosen_form_which_is_remembered(staffed: Staffed, tmp_path: Path) -> None:
    options = {
        "decimal": "comma",
        "delimiter": "semicolon",
        "time-zone": "Asia/Tokyo",
        "columns": "id,paidAt,amount,net",
    }
    arguments = [f"--{name}={value}" for name, value in options.items()]
    access = ("--organization", f"{staffed.organization}", "--mode", "live")
    command = ("export_payments", *access, "--format", "csv", "--totals", *arguments)
    expected = manage(*command, url=staffed.service.database_url).stdout.removeprefix("\ufeff")

    with staffed.page() as page:
        page.goto(LIST)
        page.get_by_text("Export", exact=True).click()
        columns = page.get_by_role("group", name="Columns of the file")
        for checkbox in columns.get_by_role("checkbox").all():
            checkbox.uncheck()
        for column in ("Payment", "Paid", "Amount", "Currency", "Net"):
            columns.get_by_label(column, exact=True).check()
        page.get_by_label("Decimal").select_option("1234,50")
        page.get_by_label("Delimiter").select_option("Semicolon")
        page.get_by_label("Time zone").fill("Asia/Tokyo")
        page.get_by_label("Totals by currency").check()
        with page.expect_download():
            page.get_by_role("button", name="Export CSV").click()
        text = save_export(page, tmp_path, button="Export CSV")

    assert text == expected
    assert "Total EUR: paid;" in text
    assert [file.name for file in tmp_path.iterdir()] == [f"{slugify(SHOPS[0].name)}-created.csv"]


def test_invalid_options_of_an_export_are_shown(staffed: Staffed) -> None:
    with staffed.page() as page:
        page.goto(LIST)
        page.get_by_text("Export", exact=True).click()
        page.get_by_label("Time zone").fill("Mars")
        page.get_by_role("button", name="Export CSV").click()

        expect(page.get_by_role("status")).to_contain_text("no file was saved. Time zone: Enter the IANA name")


@pytest.mark.parametrize("button", ["Export CSV", "Raw CSV"])
def test_failed_export_saves_no_file_and_shows_the_reason(staffed: Staffed, button: str) -> None:
    with staffed.page() as page:
        page.goto(LIST)
        page.get_by_text("Export", exact=True).click()
        page.context.clear_cookies()
        page.get_by_role("button", name=button).click()

        expect(page.get_by_role("status")).to_have_text("Export failed; no file was saved. Log in again.")


def test_export_can_be_started_with_the_keyboard_and_fits_a_phone(staffed: Staffed) -> None:
    with staffed.page(width=390, bypass_csp=True) as page:
        page.goto(LIST)
        page.get_by_text("Export", exact=True).focus()
        page.keyboard.press("Enter")
        for look in LOOKS:
            set_look(page, look)
            assert overflow(page) + violations(page) == []
        page.get_by_label("Time zone").focus()
        with page.expect_download():
            page.keyboard.press("Enter")


@pytest.mark.needs("curl")
def test_key_is_added_used_and_revoked(staffed: Staffed) -> None:
    with staffed.page(permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto("/admin/")
        click(page, "Organizations")
        click(page, str(staffed.organization))
        click(page, "Add API key")
        page.get_by_label("Mode").select_option("live")
        page.get_by_label("Name").fill("Till")
        press(page, "Add API key")

        page.get_by_role("region", name="Example request").get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        command = page.evaluate("navigator.clipboard.readText()")
        assert run(command)["count"] == 2

        click(page, "Done")
        expect(page.locator(".field-state")).to_contain_text("Active")
        click(page, "Revoke key")
        click(page, "Cancel")
        assert run(command)["count"] == 2
        click(page, "Revoke key")
        press(page, "Revoke key")
        expect(page.locator(".field-state")).to_contain_text("Revoked")
        assert run(command)["status"] == 401

        click(page, "History")
        history = page.locator("#change-history tbody").inner_text()
        assert re.findall(r"Added|Revoked", history) == ["Added", "Revoked"]


def test_second_click_and_reload_add_no_other_key(staffed: Staffed) -> None:
    with staffed.page() as page:
        page.goto(f"/admin/payments/apikey/add/?organization={staffed.organization}")
        page.get_by_label("Mode").select_option("live")
        page.get_by_label("Name").fill("Twice")
        with page.expect_navigation():
            page.get_by_role("button", name="Add API key").dblclick()
        expect(page.get_by_role("heading", name="Copy your key now")).to_be_visible()

        page.reload()
        expect(page.get_by_role("heading", name="You already created this key")).to_be_visible()
        click(page, "Twice")
        expect(page.locator(".field-state")).to_contain_text("Active")

        page.goto("/admin/payments/apikey/?q=Twice")
        expect(page.locator("#result_list tbody tr")).to_have_count(1)


def run(command: str) -> Any:
    """Run a command in a shell, and return the JSON that it prints."""
    completed = subprocess.run(["sh", "-c", f"{command} --silent"], capture_output=True, check=True)
    return json.loads(completed.stdout)


def test_admin_can_be_used_with_the_keyboard_alone(staffed: Staffed) -> None:
    def tab_to(page: Page, words: str) -> None:
        """Press Tab until the element with this text has a visible focus."""
        for _ in range(120):
            page.keyboard.press("Tab")
            focused = page.evaluate(
                "(element => [element.innerText || element.labels?.[0]?.innerText || '',"
                " getComputedStyle(element).outlineStyle])(document.activeElement)"
            )
            if focused[0].strip().startswith(words):
                assert focused[1] != "none"
                return
        raise AssertionError(f"Tab does not lead to {words}")

    with staffed.page() as page:
        page.goto("/admin/")
        tab_to(page, "Payments\n")  # the number, not the menu
        with page.expect_navigation():
            page.keyboard.press("Enter")
        tab_to(page, "+ Status")
        page.keyboard.press("Enter")
        tab_to(page, "Failed")
        page.keyboard.press("Space")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.get_by_role("list", name="Filters in use")).to_contain_text("Status: Failed")
        tab_to(page, "pt_")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Failed")


def test_admin_pages_are_accessible_and_fit_the_screen(staffed: Staffed) -> None:
    [payment_id, *_] = exported_ids(staffed)

    with staffed.anonymous_page(bypass_csp=True) as page:
        problems = page_problems(page, ["/admin/"])
    with staffed.page(bypass_csp=True) as page:
        paths = (
            "/admin/",
            f"/admin/?organization={staffed.organization}&mode=live&period=year",
            "/admin/?since=2020-01-01&until=2020-12-31",
            "/admin/?period=custom",
            "/admin/report/?by=created",
            "/admin/report/?by=x",
            LIST,
            f"{LIST}?status=failed",
            f"{LIST}switch/?q=demo",
            f"{LIST}?method=No!",
            f"{LIST}{payment_id.replace('_', '_5F')}/change/",
            "/admin/payments/organization/",
            f"/admin/payments/organization/{staffed.organization}/change/",
            "/admin/payments/apikey/",
            "/admin/payments/apikey/add/",
            "/admin/nothing/",
            "/admin/auth/user/",
        )
        problems += page_problems(page, paths)

    assert problems == []
