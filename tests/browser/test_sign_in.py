"""Sign-in at an OpenID provider, and the second factor, in a browser: policy, forms, accessibility and width."""

import secrets
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from payments.models import Organization
from tests.browser.pages import LOOKS, Problem, log_in, open_page, overflow, page_problems, set_look, violations
from tests.support.authenticator_app import App
from tests.support.connecting import connected_to
from tests.support.migrated import fresh_database
from tests.support.oidc import Provider, provider
from tests.support.service import QUICK_PASSWORDS, Service

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.xdist_group("browser"), pytest.mark.extended]

PASSWORD = secrets.token_urlsafe()


@pytest.fixture(scope="module")
def bakery() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, bakery: Provider) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("browser_sign_in")
    with fresh_database(directory) as url:
        running = Service(
            url, settings=bakery.settings(SECOND_FACTOR="required", **QUICK_PASSWORDS), log=directory / "log"
        )
        running.manage("migrate", "--verbosity", "0")
        running.create_superuser("ann", password=PASSWORD)
        with connected_to(url):
            User.objects.filter(username="ann").update(email="ann@example.com")
        with running.serving():
            yield running


def problems(page: Page) -> list[Problem]:
    """Return the problems of the open page in all looks."""
    faults: list[Problem] = []
    for look in LOOKS:
        set_look(page, look)
        faults += overflow(page) + violations(page)
    return faults


def test_staff_sign_in_at_the_provider(service: Service, bakery: Provider, browser: Browser) -> None:
    bakery.set_account("ann")

    errors: list[str] = []
    with browser.new_context(base_url=service.base_url) as context:
        context.route("https://cdn.jsdelivr.net/**", lambda route: route.fulfill(body=""))  # of the provider's page
        page = context.new_page()
        page.on("console", lambda message: errors.append(message.text))
        page.goto("/admin/payments/apikey/")
        page.get_by_role("link", name="Sign in with Bakery").click()
        page.locator("input[name=sub]").fill("ann")
        page.get_by_role("button", name="Authorize").click()

        expect(page.get_by_role("heading", name="API keys")).to_be_visible()
        expect(page.get_by_role("link", name="Second factor")).to_have_count(0)

    assert errors == []


def test_second_factor_is_set_up_and_used(service: Service, browser: Browser) -> None:
    with connected_to(service.database_url):
        ann = User.objects.get().pk
        Organization.objects.bulk_create(Organization(id=number, name=f"Shop {number}") for number in (7, 8, 9))
    permissions = ["clipboard-read", "clipboard-write"]
    with open_page(browser, service.base_url, bypass_csp=True, permissions=permissions) as page:
        page.goto("/admin/login/")
        faults = problems(page)
        log_in(page, user_name="ann", password=PASSWORD)
        faults += problems(page)
        page.get_by_text("Enter the key by hand").click()
        app = App(page.locator("details code").inner_text())
        page.get_by_role("textbox", name="Code").fill(app.code())
        page.get_by_role("button", name="Set up").dblclick()
        expect(page.get_by_role("heading", name="Save your recovery codes")).to_be_visible()
        faults += problems(page)
        expect(page.get_by_role("button", name="Print")).to_be_visible()
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert len(set(page.evaluate("navigator.clipboard.readText()").split())) == 10
        page.get_by_role("link", name="Continue").click()
        faults += page_problems(page, ("/admin/auth/user/", "/admin/auth/user/add/", f"/admin/auth/user/{ann}/change/"))
        page.locator("#user-tools summary").click()
        page.get_by_role("link", name="Second factor").click()
        faults += problems(page)
        page.locator("#user-tools summary").click()
        page.get_by_role("button", name="Log out").click()

    with open_page(browser, service.base_url) as page:
        log_in(page, user_name="ann", password=PASSWORD)
        page.get_by_role("textbox", name="Code").fill(app.wrong_code())
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("This code is wrong")
        page.get_by_role("textbox", name="Code").fill(app.code())
        page.get_by_role("button", name="Log in").click()
        expect(page.locator("#user-tools summary")).to_have_text("ann")

    assert faults == []
