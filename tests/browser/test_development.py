"""The browsable API of the development server, used in a browser."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from payments.demo import SHOPS
from tests.browser.pages import open_page, page_problems
from tests.support.api import payment_ids
from tests.support.migrated import fresh_database
from tests.support.service import Service, Walker

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.xdist_group("browser"), pytest.mark.extended]


class Development(NamedTuple):
    """A development server, a key, and a browser."""

    service: Service
    key: str
    browser: Browser

    @property
    def list(self) -> str:
        return f"{self.service.base_url}/v2/payments"

    @contextmanager
    def page(self, **options: Any) -> Iterator[Page]:
        """Open a page whose user logs in with a key."""
        credentials = {"username": self.key, "password": ""}
        with open_page(self.browser, self.service.base_url, http_credentials=credentials, **options) as page:
            yield page


@pytest.fixture(scope="module")
def development(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Development]:
    directory = tmp_path_factory.mktemp("development")
    with fresh_database(directory) as url:
        service = Service(url, settings={"DEBUG": "true"}, log=directory / "log")
        service.create_demo_payments(200)
        key = service.create_api_key(organization=SHOPS[0].id, mode="live")
        with service.serving(".venv/bin/python", "manage.py", "runserver", f"127.0.0.1:{service.port}"):
            yield Development(service, key, browser)


def document(page: Page) -> Any:
    """Return the JSON document on a page."""
    return json.loads(page.locator(".response-info").inner_text().partition("\n\n")[2])


def follow(page: Page, href: str) -> None:
    """Click a link of the document."""
    with page.expect_navigation(url=href):
        page.locator(f'.response-info a[href="{href}"]').first.click()


def walk(page: Page, relation: str) -> list[Any]:
    """Click the links with this name to the last page; return the documents of all pages."""
    documents = [document(page)]
    while link := documents[-1]["_links"].get(relation):
        follow(page, link["href"])
        documents.append(document(page))
    return documents


def apply_filters(page: Page, **fields: str) -> None:
    """Fill in fields of the form and submit it."""
    page.locator("details").evaluate("details => { details.open = true }")
    for name, value in fields.items():
        page.get_by_label(name, exact=True).fill(value)
    with page.expect_navigation():
        page.get_by_role("button", name="Apply").click()


def test_links_of_the_document_lead_through_the_list_and_back(development: Development) -> None:
    with Walker(development.service.base_url, development.key) as walker:
        expected = payment_ids(*walker.walk("next", f"{development.list}?limit=30"))

    with development.page() as page:
        page.goto(f"{development.list}?limit=30")
        forward = walk(page, "next")
        back = walk(page, "previous")

    assert payment_ids(*forward) == expected
    assert payment_ids(*reversed(back)) == expected
    assert len(forward) > 3


def test_pager_leads_to_the_next_and_the_previous_page(development: Development) -> None:
    with development.page() as page:
        page.goto(f"{development.list}?limit=50")
        first = document(page)
        page.get_by_role("link", name="Older").first.click()
        page.wait_for_url(first["_links"]["next"]["href"])
        page.get_by_role("link", name="Newer").last.click()
        page.wait_for_url(first["_links"]["self"]["href"])

        assert document(page) == first


def test_form_sends_only_the_filled_in_fields(development: Development) -> None:
    with development.page() as page:
        page.goto(development.list)
        order = next(payment["metadata"]["order"] for payment in embedded(page) if payment["metadata"])
        apply_filters(
            page, **{"status": "open,succeeded", "createdAt[gte]": "2020-01-01", "KEY=VALUE": f"order={order}"}
        )

        assert parse_qsl(urlsplit(page.url).query) == [
            ("status", "open,succeeded"),
            ("createdAt[gte]", "2020-01-01"),
            ("metadata[order]", order),
        ]
        assert {payment["metadata"]["order"] for payment in embedded(page)} <= {order}
        expect(page.get_by_label("status", exact=True)).to_have_value("open,succeeded")
        expect(page.get_by_label("createdAt[gte]", exact=True)).to_have_value("2020-01-01")
        expect(page.get_by_label("metadata[order]", exact=True)).to_have_value(order)

        page.get_by_role("link", name="Clear").click()
        page.wait_for_url(development.list)


def test_form_shows_an_error_at_its_field(development: Development) -> None:
    with development.page() as page:
        page.goto(development.list)
        apply_filters(page, status="succeeded", limit="0")
        limit = page.get_by_label("limit", exact=True)
        expect(page.get_by_role("alert")).to_contain_text("limit must be a whole number from 1 to 250.")
        expect(limit).to_have_accessible_description("limit must be a whole number from 1 to 250.")
        expect(limit).to_be_focused()

        apply_filters(page, limit="5")
        assert parse_qsl(urlsplit(page.url).query) == [("limit", "5"), ("status", "succeeded")]
        assert document(page)["count"] == 5


def test_metadata_pair_without_a_value_is_refused(development: Development) -> None:
    with development.page() as page:
        page.goto(development.list)
        apply_filters(page, **{"KEY=VALUE": "order"})

        expect(page.get_by_role("alert")).to_contain_text("metadata[order] must be")


def test_record_links_to_the_admin_and_the_header_to_the_list(development: Development) -> None:
    with development.page() as page:
        page.goto(f"{development.list}?limit=1")
        [payment] = embedded(page)
        follow(page, payment["_links"]["self"]["href"])
        assert document(page) == payment

        page.locator(f'.response-info a[href="{payment["_links"]["dashboard"]["href"]}"]').click()
        page.wait_for_url(re.compile(r"/admin/login/\?next="))
        page.go_back()
        page.get_by_role("list").get_by_role("link", name="Payments").click()
        page.wait_for_url(development.list)


def test_browsable_pages_are_accessible_and_fit_the_screen(development: Development) -> None:
    with development.page() as page:
        page.goto(f"{development.list}?limit=1")
        [payment] = embedded(page)
        queries = ("?limit=2", "?limit=2&sort=asc&status=succeeded&metadata[a]=b", "?limit=0&status=x")
        addresses = [*(development.list + query for query in queries), payment["_links"]["self"]["href"]]
        addresses += [f"{development.list}/changes?limit=2", f"{development.list}/changes?from=now"]

        assert page_problems(page, addresses) == []


def embedded(page: Page) -> list[Any]:
    payments: list[Any] = document(page)["_embedded"]["payments"]
    return payments
