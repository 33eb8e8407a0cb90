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
        expect(page.locator(".meaning")).to_contain_text(f"Search for the word {number}")
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
        expect(page.locator(".meaning")).to_contain_text(f"a card number that ends in {digits}")

    assert payment_id in results
    assert {cards[result] for result in results} == {digits}


def test_filter_is_saved_and_used_for_another_organization(staffed: Staffed) -> None:
    name, other = "Lost cards", SHOPS[1]

    with staffed.page() as page:
        page.goto(LIST)
        page.get_by_text("Filters", exact=True).click()
        page.get_by_label("Failed").check()
        page.get_by_label("creditcard").check()
        press(page, "Apply filters")
        page.get_by_text("Save this search").click()
        page.get_by_label("Name").fill(name)
        press(page, "Save")
        expect(page.get_by_text(f"The filter “{name}” was saved.")).to_be_visible()

        page.goto(f"{LIST}?organization={other.id}&mode=live")
        follow(page, name)
        chips = page.get_by_role("list", name="Filters in use").get_by_role("listitem").all_inner_texts()
        organization = page.locator("#id_organization").input_value()
        titles = page.get_by_role("columnheader").all_inner_texts()
        follow(page, "Remove the filter Status: failed")
        remaining = page.get_by_role("list", name="Filters in use").get_by_role("listitem").all_inner_texts()
        press(page, f"Delete the saved filter {name}")
        expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)

    assert [chip.removesuffix(" ✕") for chip in chips] == ["Status: failed", "Method: creditcard", "Clear all"]
    assert [chip.removesuffix(" ✕") for chip in remaining] == ["Method: creditcard", "Clear all"]
    assert organization == str(other.id)
    assert "Status" not in titles  # the column would repeat the filter


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
        sentence = page.locator(".totals > p").inner_text()
        money = page.locator(".totals li").all_inner_texts()

    others = [f"{statuses[status]:,} {status}" for status in Status if statuses[status] and status != Status.SUCCEEDED]
    assert sentence == f"{len(selected):,} payments. Not succeeded: {', '.join(others)}"
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
        expect(page.get_by_role("note")).to_have_count(0)
        page.locator("#id_mode").select_option("test")
        press(page, "Search")
        for link in ("Overview", "Payments"):
            expect(page.get_by_role("note")).to_have_text(banner)
            assert header_colour(page) != live_colour
            with page.expect_navigation():
                page.get_by_role("navigation", name="Main").get_by_role("link", name=link).click()
            expect(page.locator("#id_mode")).to_have_value("test")
        [first, *_] = ids(page)
        follow(page, first)
        expect(page.get_by_role("note")).to_have_text(banner)
        page.goto(LIST)  # the next visit
        expect(page.locator("#id_mode")).to_have_value("test")


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
        page.get_by_text("Columns", exact=True).click()
        page.get_by_label("Card", exact=True).check()
        press(page, "Save columns")
        expect(page.get_by_role("columnheader", name="Card")).to_be_visible()
        page.get_by_text("Columns", exact=True).click()
        press(page, "Use the default")
        expect(page.get_by_role("columnheader", name="Card")).to_have_count(0)
        page.get_by_label("Period").select_option("90d")
        press(page, "Search")

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
