"""What staff do all day, as they do it."""

import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from playwright.sync_api import Page, expect

from payments.demo import SHOPS
from tests.browser.conftest import Staffed
from tests.browser.pages import faults

LIST = "/admin/payments/payment/"


def ids(page: Page) -> list[str]:
    """Return the payments that a page lists."""
    return page.locator("th.id a").all_inner_texts()


def exported(staffed: Staffed, **selection: str) -> str:
    """Return what the command writes of the same payments."""
    return staffed.service.exported(organization=staffed.organization, mode="live", **selection)


def exported_ids(staffed: Staffed, **selection: str) -> list[str]:
    return [json.loads(line)["id"] for line in exported(staffed, **selection).splitlines()]


def click(page: Page, link: str) -> None:
    with page.expect_navigation():
        page.get_by_role("link", name=link, exact=True).first.click()


def turn(page: Page, relation: str) -> bool:
    """Go to the next or the previous page, if there is one."""
    link = page.locator(f'a[rel="{relation}"]').first
    if not link.count():
        return False
    with page.expect_navigation():
        link.click()
    return True


def press(page: Page, button: str) -> None:
    with page.expect_navigation():
        page.get_by_role("button", name=button, exact=True).click()


def test_a_wrong_password_is_told_and_the_right_one_leads_to_the_last_thirty_days(staffed: Staffed) -> None:
    with staffed.stranger() as page:
        staffed.log_in(page, password="wrong")
        expect(page.get_by_text("Please enter the correct username and password")).to_be_visible()

        staffed.log_in(page)
        expect(page.get_by_role("heading", name="The last 30 days")).to_be_visible()


def test_the_start_page_draws_what_its_table_says(staffed: Staffed) -> None:
    with staffed.page() as page:
        page.goto("/admin/")
        bars = page.locator("figure", has_text="Payments a day").locator("svg g > title").all_text_contents()
        page.get_by_text("The same as a table").click()
        rows = page.get_by_role("region", name="Days").get_by_role("row").all_inner_texts()

        days = [row.split("\t") for row in rows[1:]]
        assert bars == [f"{day}: {number} payments, {succeeded} succeeded" for day, number, succeeded, *_ in days[::-1]]
        assert len(days) == 30

        total = page.locator(".tiles li", has_text="Payments").locator("strong").inner_text()
        page.get_by_label("Mode").select_option("test")
        press(page, "Show")
        assert page.locator(".tiles li", has_text="Payments").locator("strong").inner_text() != total


def test_while_somebody_writes_the_start_page_says_what_it_does_not_know(staffed: Staffed) -> None:
    path = f"/admin/?organization={SHOPS[2].id}&mode=test"

    with staffed.page() as page:
        with writing(staffed.service.database_url, organization=SHOPS[2].id):
            page.goto(path)
            expect(page.get_by_role("status")).to_contain_text("30 of 30 days are not summed yet")
        for _ in range(30):  # on a busy machine, the time for a page is enough for some of the days only
            page.goto(path)
            if page.get_by_role("status").count() == 0:
                break
        expect(page.get_by_role("status")).to_have_count(0)
        expect(page.locator("figure").first).to_be_visible()


@contextmanager
def writing(database_url: str, *, organization: int) -> Iterator[None]:
    """Hold what an import that is just ending holds."""
    if database_url.startswith("sqlite"):
        with closing(sqlite3.connect(urlsplit(database_url).path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
    else:
        with psycopg.connect(database_url) as connection:
            connection.execute("SELECT 1 FROM payments_organization WHERE id = %s FOR NO KEY UPDATE", [organization])
            yield


def test_payments_are_filtered_and_paged_to_the_end_and_back(staffed: Staffed) -> None:
    expected = exported_ids(staffed, status="expired")

    with staffed.page() as page:
        page.goto(LIST)
        page.get_by_text("Filters").click()
        page.get_by_label("Expired").check()
        press(page, "Apply")
        there = [ids(page)]
        while turn(page, "next"):
            there.append(ids(page))
        back = [ids(page)]
        while turn(page, "prev"):
            back.append(ids(page))

        assert [each for listed in there for each in listed] == expected
        assert back == there[::-1]
        expect(page.get_by_label("Expired")).to_be_checked()
        assert len(there) > 3

        click(page, "Clear")
        expect(page.get_by_label("Expired")).not_to_be_checked()


def test_payments_are_found_by_description_customer_and_id(staffed: Staffed) -> None:
    payments = [json.loads(line) for line in exported(staffed).splitlines()]
    payment = next(each for each in payments if "customerId" in each and each["description"].startswith("Order"))

    with staffed.page() as page:
        page.goto(LIST)
        page.get_by_label("Search").fill(payment["description"])
        press(page, "Search")
        assert payment["id"] in ids(page)
        found = page.locator("td.description").all_inner_texts()
        assert all(each.startswith(payment["description"]) for each in found)

        click(page, payment["customerId"])
        assert payment["id"] in ids(page)
        assert set(page.locator("td.customer").all_inner_texts()) == {payment["customerId"]}

        page.get_by_label("Search").fill(payment["id"])
        press(page, "Search")
        expect(page.get_by_role("heading", level=1)).to_contain_text(payment["amount"]["value"])


def test_a_payment_is_opened_and_its_record_copied(staffed: Staffed) -> None:
    with staffed.page(permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(LIST)
        [payment_id, *_] = ids(page)
        click(page, payment_id)
        page.get_by_role("region", name="As the API gives it").get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
        key = staffed.service.create_api_key(organization=staffed.organization, mode="live")
        answer = page.request.get(copied["_links"]["self"]["href"], headers={"Authorization": f"Bearer {key}"})

        assert answer.json() == copied
        assert copied["id"] == payment_id
        expect(page.get_by_role("region", name="Timeline")).to_contain_text("Created")
        with page.expect_navigation():
            page.get_by_label("Breadcrumbs").get_by_role("link", name="Payments").click()
        assert payment_id in ids(page)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_what_was_found_is_saved_as_one_file(staffed: Staffed, tmp_path: Path, suffix: str) -> None:
    expected = exported(staffed)

    with staffed.page() as page:
        page.goto(LIST)
        with page.expect_download() as download:
            page.get_by_role("button", name={"csv": "CSV", "jsonl": "JSON Lines"}[suffix]).click()
        download.value.save_as(tmp_path / download.value.suggested_filename)
        expect(page.get_by_role("status")).to_contain_text("MB, complete")

    text = (tmp_path / f"payments.{suffix}").read_text(encoding="utf-8-sig")
    lines = text.splitlines()
    assert len(lines) > 5000
    if suffix == "jsonl":
        assert text == expected
    else:
        assert [line.partition(",")[0] for line in lines[1:]] == exported_ids(staffed)


def test_an_export_that_cannot_go_on_saves_nothing_and_says_why(staffed: Staffed) -> None:
    with staffed.page() as page:
        page.goto(LIST)
        page.context.clear_cookies()
        page.get_by_role("button", name="CSV").click()

        expect(page.get_by_role("status")).to_have_text("Nothing was saved. Log in again.")


def test_a_key_is_made_used_and_revoked(staffed: Staffed) -> None:
    with staffed.page(permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto("/admin/")
        click(page, "Organizations")
        click(page, str(staffed.organization))
        click(page, "Create a key")
        page.get_by_label("Mode").select_option("live")
        page.get_by_label("Name").fill("Till")
        press(page, "Create the key")

        page.get_by_role("region", name="Try it").get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        command = page.evaluate("navigator.clipboard.readText()")
        assert run(command)["count"] == 2

        click(page, "I have kept it")
        expect(page.locator(".field-state")).to_contain_text("Usable")
        click(page, "Revoke this key")
        click(page, "Keep it")
        assert run(command)["count"] == 2
        click(page, "Revoke this key")
        press(page, "Revoke it")
        expect(page.locator(".field-state")).to_contain_text("Revoked")
        assert run(command)["status"] == 401

        click(page, "History")
        history = page.locator("#change-history tbody").inner_text()
        assert re.findall(r"Added|Revoked", history) == ["Added", "Revoked"]


def run(command: str) -> Any:
    """Run a command as somebody who pastes it."""
    done = subprocess.run(["sh", "-c", f"{command} --silent"], capture_output=True, check=True)
    return json.loads(done.stdout)


def test_all_of_it_works_without_a_mouse(staffed: Staffed) -> None:
    def tab_to(page: Page, words: str) -> None:
        """Press Tab until what has that name has the focus, which can be seen."""
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
        tab_to(page, "Its payments")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        tab_to(page, "Filters")
        page.keyboard.press("Enter")
        tab_to(page, "Failed")
        page.keyboard.press("Space")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert set(page.locator("td.status").all_inner_texts()) == {"failed"}
        tab_to(page, "pt_")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("failed")


def test_every_page_can_be_used_by_everybody(staffed: Staffed) -> None:
    [payment_id, *_] = exported_ids(staffed)

    with staffed.stranger(bypass_csp=True) as page:
        found = faults(page, ["/admin/"])
    with staffed.page(bypass_csp=True) as page:
        paths = (
            "/admin/",
            LIST,
            f"{LIST}?status=failed",
            f"{LIST}?method=No!",
            f"{LIST}{payment_id.replace('_', '_5F')}/change/",
            "/admin/payments/organization/",
            f"/admin/payments/organization/{staffed.organization}/change/",
            "/admin/payments/apikey/",
            "/admin/payments/apikey/add/",
        )
        found += faults(page, paths)

    assert found == []
