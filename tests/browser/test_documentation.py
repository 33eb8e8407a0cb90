"""The documentation as its readers have it: on a phone, at night, without JavaScript; and the API to try."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Staffed
from tests.browser.pages import WIDTHS, faults

PATHS = ("/docs/", "/docs/reference/", "/docs/synchronising/")


def test_a_browser_is_led_to_the_quick_start_and_from_there_to_an_answer(staffed: Staffed) -> None:
    with staffed.stranger() as page:
        page.goto("/")
        expect(page).to_have_url(f"{staffed.service.base_url}/docs/")
        expect(page.get_by_text(f"{staffed.service.base_url}/v2/payments").first).to_be_visible()

        with page.expect_navigation():
            page.get_by_role("navigation").get_by_role("link", name="Reference").first.click()
        errors = page.get_by_role("navigation", name="Contents").get_by_role("link", name="Errors", exact=True)
        errors.click()

        expect(page.get_by_role("heading", name="Errors", exact=True)).to_be_in_viewport()


@pytest.mark.parametrize("path", PATHS)
def test_all_is_there_without_javascript(staffed: Staffed, path: str) -> None:
    def read(page: Page) -> str:
        page.goto(path)
        return page.locator("body").inner_text()

    with staffed.stranger() as with_javascript, staffed.stranger(java_script_enabled=False) as without:
        assert read(with_javascript) == read(without)


def test_without_javascript_the_page_to_try_says_what_it_needs(staffed: Staffed) -> None:
    with staffed.stranger(java_script_enabled=False) as page:
        page.goto("/docs/interactive/")

        # Where scripts are only kept from running, a browser does not show what is for those that know none.
        assert "This page needs JavaScript." in str(page.locator("noscript").text_content())
        page.get_by_role("link", name="reference").first.click()
        expect(page).to_have_url(f"{staffed.service.base_url}/docs/reference/")


def test_the_api_can_be_tried_with_a_key_and_without(staffed: Staffed) -> None:
    key = staffed.service.create_api_key(organization=staffed.organization, mode="live")

    with staffed.stranger() as page:
        page.goto("/docs/interactive/")
        page.get_by_text("List payments").click()
        page.get_by_role("button", name="Try it out").click()
        page.get_by_role("button", name="Execute").click()
        expect(page.locator(".live-responses-table tbody .response-col_status").first).to_contain_text("401")

        page.get_by_role("button", name="Authorize").first.click()
        page.get_by_label("Value:").or_(page.locator(".auth-container input")).first.fill(key)
        page.locator(".auth-btn-wrapper").get_by_role("button", name="Apply credentials").click()
        page.get_by_role("button", name="Close").last.click()
        page.get_by_role("button", name="Execute").click()
        expect(page.locator(".live-responses-table tbody .response-col_status").first).to_contain_text("200")
        expect(page.locator(".live-responses-table")).to_contain_text('"count": 20')


def test_every_page_can_be_read_by_everybody(staffed: Staffed) -> None:
    with staffed.stranger(bypass_csp=True) as page:
        assert faults(page, PATHS) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_to_try_loads_nothing_it_may_not(staffed: Staffed, width: int) -> None:
    with staffed.stranger(width=width) as page:
        page.goto("/docs/interactive/")

        expect(page.get_by_text("List payments")).to_be_visible()
