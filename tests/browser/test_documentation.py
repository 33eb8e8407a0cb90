"""The documentation in a browser: any screen, any colour scheme, without JavaScript; search; the interactive page."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Staffed
from tests.browser.pages import LOOKS, WIDTHS, Look, overflow, page_problems, set_look, violations

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.xdist_group("browser"), pytest.mark.extended]

PATHS = ("/docs/", "/docs/samples/", "/docs/reference/", "/docs/synchronising/", "/docs/changes/")
INTERACTIVE = "/docs/interactive/"
SCRIPTED = ".search, button"  # the parts that only scripts display
# Problems of Swagger UI's own markup.
SWAGGER_UI_PROBLEMS = {"nested-interactive", "label", "select-name", "scrollable-region-focusable"}


def test_root_redirects_to_the_quick_start_which_links_to_the_reference(staffed: Staffed) -> None:
    with staffed.anonymous_page() as page:
        page.goto("/")
        expect(page).to_have_url(f"{staffed.service.base_url}/docs/")
        expect(page.get_by_text(f"{staffed.service.base_url}/v2/payments").first).to_be_visible()

        with page.expect_navigation():
            page.get_by_role("navigation").get_by_role("link", name="Reference").first.click()
        errors = page.get_by_role("navigation", name="Contents").get_by_role("link", name="Errors", exact=True)
        errors.click()

        expect(page.get_by_role("heading", name="Errors", exact=True)).to_be_in_viewport()


@pytest.mark.parametrize("path", PATHS)
def test_documentation_is_complete_without_javascript(staffed: Staffed, path: str) -> None:
    def read(page: Page) -> str:
        page.goto(path)
        for part in page.locator(SCRIPTED).all():
            part.evaluate("(element) => { element.hidden = true; }")
        return page.locator("body").inner_text()

    with staffed.anonymous_page() as with_javascript, staffed.anonymous_page(java_script_enabled=False) as without:
        assert read(with_javascript) == read(without)


@pytest.mark.parametrize("path", PATHS)
def test_page_without_javascript_has_no_buttons_and_no_search(staffed: Staffed, path: str) -> None:
    with staffed.anonymous_page(java_script_enabled=False) as page:
        page.goto(path)

        assert page.locator(SCRIPTED).locator("visible=true").count() == 0


def test_button_copies_the_example_beside_it(staffed: Staffed) -> None:
    with staffed.anonymous_page(permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto("/docs/")
        button = page.locator(".example.sh button").nth(1)

        button.click()

        expect(button).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        url = f"{staffed.service.base_url}/v2/payments?limit=1"
        assert copied == f'curl -H "Authorization: Bearer $PAYMENTS_KEY" "{url}"'


def search(page: Page) -> Locator:
    return page.get_by_role("searchbox", name="Search the documentation")


def results(page: Page) -> Locator:
    return page.get_by_role("search").get_by_role("link")


def test_search_works_with_the_keyboard_alone(staffed: Staffed) -> None:
    with staffed.anonymous_page() as page:
        page.goto("/docs/")
        page.keyboard.press("/")
        page.keyboard.type("rate LIMITS")
        expect(results(page).first).to_contain_text("Rate limits")

        page.keyboard.press("ArrowDown")
        expect(results(page).first).to_be_focused()
        page.keyboard.press("ArrowUp")
        expect(search(page)).to_be_focused()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")

        expect(page).to_have_url(f"{staffed.service.base_url}/docs/reference/#rate-limits")
        expect(page.get_by_role("heading", name="Rate limits", exact=True)).to_be_in_viewport()


def test_enter_opens_the_first_result(staffed: Staffed) -> None:
    with staffed.anonymous_page() as page:
        page.goto(INTERACTIVE)
        search(page).fill("slow filters")
        search(page).press("Enter")

        expect(page).to_have_url(f"{staffed.service.base_url}/docs/reference/#slow-filters")


def test_escape_clears_the_search(staffed: Staffed) -> None:
    with staffed.anonymous_page() as page:
        page.goto("/docs/")
        search(page).fill("limit")
        expect(results(page).first).to_be_visible()
        page.keyboard.press("ArrowDown")

        page.keyboard.press("Escape")

        expect(search(page)).to_be_focused()
        expect(search(page)).to_have_value("")
        expect(results(page)).to_have_count(0)


def test_results_close_if_the_focus_leaves_them(staffed: Staffed) -> None:
    with staffed.anonymous_page() as page:
        page.goto("/docs/")
        search(page).fill("limit")
        expect(results(page).first).to_be_visible()

        page.locator("main").click(position={"x": 5, "y": 5})

        expect(results(page)).to_have_count(0)


@pytest.mark.parametrize(
    ("query", "section"),
    [
        ("webhook", "Payment record"),
        ("duplicate", "Pagination"),
        ("versioning", "Versioning"),
        ("sdk", "Samples"),
        ("print payments", "Samples"),
    ],
)
def test_search_prefers_titles_to_text_and_text_to_examples(staffed: Staffed, query: str, section: str) -> None:
    with staffed.anonymous_page() as page:
        page.goto("/docs/")

        search(page).fill(query)

        expect(results(page).first.locator("strong")).to_have_text(section)


@pytest.mark.parametrize("query", ["nothing-like-this", "<img src=x onerror=alert(1)>", "“”&lt;b&gt;"])
def test_search_without_results_repeats_the_query_as_text(staffed: Staffed, query: str) -> None:
    with staffed.anonymous_page() as page:
        page.goto("/docs/")

        search(page).fill(query)

        status = page.get_by_role("search").get_by_role("status")
        expect(status).to_have_text(f"No results for “{query}”.")
        expect(page.get_by_role("search").locator("img, b")).to_have_count(0)


def test_search_without_an_index_says_so_and_tries_again(staffed: Staffed) -> None:
    with staffed.anonymous_page() as page:
        page.route("**/docs/search.json", lambda route: route.fulfill(status=404))
        page.goto("/docs/")
        search(page).fill("limit")
        status = page.get_by_role("search").get_by_role("status")
        expect(status).to_have_text("The search is not available now. Try again later.")

        page.unroute("**/docs/search.json")
        search(page).fill("limits")

        expect(results(page).first).to_be_visible()


def test_search_results_are_accessible_and_fit_the_screen(staffed: Staffed) -> None:
    with staffed.anonymous_page(bypass_csp=True) as page:
        page.goto("/docs/")
        search(page).fill("payment")
        expect(results(page).first).to_be_visible()

        problems = []
        for look in LOOKS:
            set_look(page, look)
            problems += overflow(page) + violations(page)

    assert problems == []


def test_interactive_page_says_that_it_needs_javascript(staffed: Staffed) -> None:
    with staffed.anonymous_page(java_script_enabled=False) as page:
        page.goto(INTERACTIVE)

        # Playwright only stops scripts from running, and then Chromium does not display `noscript`.
        assert "This page needs JavaScript." in str(page.locator("noscript").text_content())
        page.get_by_role("link", name="reference").first.click()
        expect(page).to_have_url(f"{staffed.service.base_url}/docs/reference/")


def test_interactive_page_sends_requests_with_and_without_a_key(staffed: Staffed) -> None:
    key = staffed.service.create_api_key(organization=staffed.organization, mode="live")

    with staffed.anonymous_page() as page:
        page.goto(INTERACTIVE)
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


def test_documentation_pages_are_accessible_and_fit_the_screen(staffed: Staffed) -> None:
    with staffed.anonymous_page(bypass_csp=True) as page:
        assert page_problems(page, PATHS) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_interactive_page_follows_the_content_security_policy(staffed: Staffed, width: int) -> None:
    with staffed.anonymous_page(width=width) as page:
        page.goto(INTERACTIVE)

        expect(page.get_by_text("List payments")).to_be_visible()


@pytest.mark.parametrize("look", [*LOOKS, (1440, True)])
def test_interactive_page_has_enough_contrast_and_fits_the_screen(staffed: Staffed, look: Look) -> None:
    with staffed.anonymous_page(bypass_csp=True) as page:
        page.goto(INTERACTIVE)
        page.get_by_text("List payments").click()
        page.get_by_role("button", name="Try it out").click()
        page.get_by_role("button", name="Execute").click()
        expect(page.locator(".live-responses-table tbody .response-col_status").first).to_contain_text("401")

        set_look(page, look)
        problems = overflow(page) + violations(page)

    assert [problem for problem in problems if problem[1] not in SWAGGER_UI_PROBLEMS] == []


def test_interactive_page_follows_the_colour_scheme(staffed: Staffed) -> None:
    with staffed.anonymous_page(color_scheme="dark") as page:
        page.goto(INTERACTIVE)
        expect(page.get_by_text("List payments")).to_be_visible()
        ground = page.locator("body").evaluate("(element) => getComputedStyle(element).backgroundColor")

        expect(page.locator("html")).to_have_css("background-color", ground)
        expect(page.locator(".swagger-ui .scheme-container")).to_have_css("background-color", ground)
        muted = search(page).evaluate("(element) => getComputedStyle(element).borderTopColor")
        expect(page.locator(".swagger-ui .title small").first).to_have_css("background-color", muted)
        page.emulate_media(color_scheme="light")
        expect(page.locator(".swagger-ui .scheme-container")).to_have_css("background-color", "rgb(255, 255, 255)")
