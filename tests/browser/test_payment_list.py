"""Tasks of staff in the payment list, done in a browser."""

import json
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from payments.demo import SHOPS
from payments.models import Status
from tests.browser.conftest import Staffed
from tests.browser.pages import page_problems

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.xdist_group("browser"), pytest.mark.extended]

LIST = "/admin/payments/payment/"


@pytest.fixture(scope="module")
def payments(staffed: Staffed) -> list[dict[str, Any]]:
    """Return the live payments of the first organization, newest first, as an export has them."""
    lines = staffed.service.exported(organization=staffed.organization, mode="live").splitlines()
    return [json.loads(line) for line in lines]


def ids(page: Page) -> list[str]:
    """Return the IDs of the payments on a page."""
    return page.locator("th.id a").all_inner_texts()


def search(page: Page, text: str) -> None:
    page.get_by_label("Search", exact=True).fill(text)
    press(page, "Search")


def press(page: Page, button: str) -> None:
    with page.expect_navigation():
        page.get_by_role("button", name=button, exact=True).click()


def follow(page: Page, link: str) -> None:
    with page.expect_navigation():
        page.get_by_role("link", name=link, exact=True).first.click()


def test_order_is_found_by_its_number(staffed: Staffed, payments: list[dict[str, Any]]) -> None:
    payment = next(payment for payment in payments[2000:] if payment["description"].startswith("Order "))
    number = payment["description"].removeprefix("Order ")
    expected = [other["id"] for other in payments if other["description"] == payment["description"]]

    with staffed.page() as page:
        page.goto(LIST)
        search(page, number)
        results = ids(page)
        expect(page.locator(".meaning")).to_contain_text(f"“{number}”")
        follow(page, payment["id"])
        expect(page.locator("main")).to_contain_text(payment["description"])

    assert results == expected


def test_payment_is_found_by_its_amount(staffed: Staffed, payments: list[dict[str, Any]]) -> None:
    amount = payments[3000]["amount"]
    expected = [payment["id"] for payment in payments if payment["amount"] == amount]

    with staffed.page() as page:
        page.goto(LIST)
        search(page, f"{amount['value']} {amount['currency'].lower()}")
        results = ids(page)

    assert results == expected[:50]


def test_payment_is_found_by_the_last_four_digits_of_its_card(staffed: Staffed, payments: list[dict[str, Any]]) -> None:
    cards = {payment["id"]: (payment.get("details") or {}).get("cardNumber", "")[-4:] for payment in payments}
    payment_id, digits = next((payment_id, digits) for payment_id, digits in cards.items() if digits)

    with staffed.page() as page:
        page.goto(LIST)
        search(page, f"**** {digits}")
        results = ids(page)
        expect(page.locator(".meaning")).to_contain_text(f"Card ending in {digits}")

    assert payment_id in results
    assert {cards[result] for result in results} == {digits}


def test_filter_is_saved_and_used_for_another_organization(staffed: Staffed) -> None:
    name, other = "Lost cards", SHOPS[1]

    with staffed.page() as page:
        page.goto(LIST)
        for menu, choice in (("+ Status", "Failed"), ("+ Method", "Credit card")):
            page.get_by_text(menu).click()
            page.get_by_label(choice).check()
            press(page, "Apply")
        page.get_by_text("Saved filters").click()
        page.get_by_label("Save this list as").fill(name)
        press(page, "Save")
        expect(page.get_by_text(f"The saved filter “{name}” was added.")).to_be_visible()

        page.goto(f"{LIST}?organization={other.id}&mode=live")
        page.get_by_text("Saved filters").click()
        follow(page, name)
        chips = page.get_by_role("list", name="Filters in use").get_by_role("listitem").all_inner_texts()
        organization = page.locator("#id_organization").input_value()
        follow(page, "Remove the filter Status: Failed")
        remaining = page.get_by_role("list", name="Filters in use").get_by_role("listitem").all_inner_texts()
        page.get_by_text("Saved filters").click()
        page.get_by_title("Delete this saved filter").click()
        press(page, "Delete")
        expect(page.get_by_text(f"The saved filter “{name}” was deleted.")).to_be_visible()

    assert [chip.removesuffix(" ✕") for chip in chips] == ["Status: Failed", "Method: Credit card", "Clear all"]
    assert [chip.removesuffix(" ✕") for chip in remaining] == ["Method: Credit card", "Clear all"]
    assert organization == str(other.id)


def test_totals_agree_with_the_exported_payments(staffed: Staffed, payments: list[dict[str, Any]]) -> None:
    selected = [payment for payment in payments if payment.get("method") in {"ideal", "paypal"}]
    statuses = Counter(payment["status"] for payment in selected)
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for payment in selected:
        if payment["status"] == "succeeded":
            sums[payment["amount"]["currency"]]["payments"] += 1
            for name in ("amount", "amountNet"):
                sums[payment["amount"]["currency"]][name] += int(Decimal(payment[name]["value"]) * 100)

    with staffed.page() as page:
        page.goto(f"{LIST}?method=ideal&method=paypal")
        sentence = page.locator(".summary > p").first.inner_text()
        money = page.locator(".money li").all_inner_texts()

    others = [f"{statuses[status]:,} {status}" for status in Status if statuses[status] and status != Status.SUCCEEDED]
    assert sentence == f"1\u201350 of {len(selected):,} payments. Not paid: {', '.join(others)}"
    assert money == [
        f"Paid {amount(sums[currency]['amount'])} {currency} ({sums[currency]['payments']:,}), refunded 0.00, "
        f"net {amount(sums[currency]['amountNet'])}"
        for currency in sorted(sums, key=lambda currency: -counts(selected)[currency])
    ]


def amount(hundredths: int) -> str:
    return f"{Decimal(hundredths).scaleb(-2):,.2f}"


def counts(payments: list[dict[str, Any]]) -> Counter[str]:
    return Counter(payment["amount"]["currency"] for payment in payments)


def test_test_mode_is_marked_and_kept_by_the_links(staffed: Staffed) -> None:
    banner = "Test mode. These payments moved no money."

    def header_colour(page: Page) -> Any:
        return page.evaluate("getComputedStyle(document.getElementById('header')).backgroundColor")

    with staffed.page() as page:
        page.goto(LIST)
        live_colour = header_colour(page)
        expect(page.locator(".test-banner")).to_have_count(0)
        press(page, "Test")
        for link in ("Overview", "Payments"):
            expect(page.locator(".test-banner")).to_have_text(banner)
            assert header_colour(page) != live_colour
            with page.expect_navigation():
                page.get_by_role("navigation", name="Main").get_by_role("link", name=link).click()
            expect(page.locator("#id_mode")).to_have_value("test")
        [first, *_] = ids(page)
        follow(page, first)
        expect(page.locator(".test-banner")).to_have_text(banner)
        page.goto(LIST)  # the next visit
        press(page, "Live")
        expect(page.locator(".test-banner")).to_have_count(0)


def test_organization_is_switched_with_the_keyboard(staffed: Staffed) -> None:
    with staffed.page() as page:
        for shop in (SHOPS[1], SHOPS[0]):
            page.goto(f"{LIST}?status=failed")
            page.locator(".switcher summary").focus()
            page.keyboard.press("Enter")
            page.get_by_role("button", name=shop.name).focus()
            with page.expect_navigation():
                page.keyboard.press("Enter")
            expect(page.get_by_role("heading", level=1)).to_have_text(f"{shop.name} · Payments · Live")
            assert f"organization={shop.id}" in page.url
            assert "status=failed" in page.url


def test_click_on_a_row_opens_its_payment_and_an_id_can_be_copied(staffed: Staffed) -> None:
    with staffed.page(permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(LIST)
        [payment_id, *_] = ids(page)
        page.locator(".copy").first.click()
        expect(page.locator(".copy").first).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == payment_id
        with page.expect_navigation():
            page.locator("td.amount").first.click()

        assert payment_id in page.locator("main").inner_text()


@pytest.mark.parametrize(("width", "height", "top"), [(390, 844, 500), (1440, 900, 300)])
def test_first_payment_is_on_the_first_screen(staffed: Staffed, width: int, height: int, top: int) -> None:
    with staffed.page(width=width) as page:
        page.set_viewport_size({"width": width, "height": height})
        page.goto(LIST)
        box = page.locator("table.payments tbody tr").first.bounding_box()
        page.locator("#footer").scroll_into_view_if_needed()
        header = page.locator("table.payments thead th").first.bounding_box()

        assert box
        assert box["y"] < top
        assert width < 1200 or (header and header["y"] == 0)


def test_order_is_found_with_the_keyboard_alone(staffed: Staffed, payments: list[dict[str, Any]]) -> None:
    payment = next(payment for payment in payments[1000:] if payment["description"].startswith("Order "))

    def tab_to(page: Page, selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
                return
        raise AssertionError(f"Tab does not lead to {selector}")

    with staffed.page() as page:
        page.goto(LIST)
        page.keyboard.press("/")
        page.keyboard.type(payment["description"].removeprefix("Order "))
        with page.expect_navigation():
            page.keyboard.press("Enter")
        tab_to(page, "th.id a")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text(payment["description"])
        tab_to(page, "nav a[href*='from=']")
        with page.expect_navigation():
            page.keyboard.press("Enter")

        assert payment["id"] in ids(page)
        expect(page.get_by_label("Search", exact=True)).to_have_value(payment["description"].removeprefix("Order "))


def test_columns_are_chosen_and_the_address_has_only_filled_in_fields(staffed: Staffed) -> None:
    with staffed.page() as page:
        page.goto(LIST)
        page.get_by_text("Columns", exact=True).first.click()
        page.get_by_label("Type", exact=True).check()
        press(page, "Save")
        expect(page.get_by_role("columnheader", name="Type")).to_be_visible()
        page.get_by_text("Columns", exact=True).first.click()
        press(page, "Reset")
        expect(page.get_by_role("columnheader", name="Type")).to_have_count(0)
        page.get_by_text("All days").first.click()
        page.get_by_label("Period").select_option("90d")
        press(page, "Apply")

        assert page.url.endswith(
            f"{LIST}?organization={staffed.organization}&mode=live&period=90d&by=created&sort=desc"
        )


def test_lists_with_filters_are_accessible_and_fit_the_screen(staffed: Staffed) -> None:
    paths = (
        f"{LIST}?mode=test&status=failed&status=open&period=90d",
        f"{LIST}?q=4242&sort=asc&mode=live",
        f"{LIST}?amount_min=5&mode=live",
    )

    with staffed.page(bypass_csp=True) as page:
        problems = page_problems(page, [path for path in paths for _ in range(2)])  # axe checks both looks

    assert problems == []
