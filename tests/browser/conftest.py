"""Fixtures: a browser, and the service with demo payments and an admin user."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from payments.demo import SHOPS
from tests.browser.pages import CHROMIUM, launch_browser, log_in, open_page
from tests.support.migrated import fresh_database
from tests.support.service import QUICK_PASSWORDS, Service
from tests.support.tools import require

LIMITS = {"REQUEST_SECONDS_MAX": "20"}  # a test waits for a lock for a part of this
PAYMENTS = 12_000  # so that an export has several parts


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    require(*CHROMIUM)
    with launch_browser() as browser:
        yield browser


@dataclass
class Staffed:
    """The deployed service with demo payments and an admin user."""

    service: Service
    browser: Browser
    password: str

    @property
    def organization(self) -> int:
        return SHOPS[0].id

    @contextmanager
    def page(self, **options: Any) -> Iterator[Page]:
        """Open a page as the logged-in user."""
        with self.anonymous_page(storage_state=self.session, **options) as page:
            yield page

    @contextmanager
    def anonymous_page(self, **options: Any) -> Iterator[Page]:
        """Open a page without a session."""
        with open_page(self.browser, self.service.base_url, **options) as page:
            yield page

    @cached_property
    def session(self) -> Any:
        """Return the browser's storage after the login."""
        with self.anonymous_page() as page:
            self.log_in(page)
            return page.context.storage_state()

    def log_in(self, page: Page, *, password: str = "") -> None:
        log_in(page, user_name="staff", password=password or self.password)


@pytest.fixture(scope="package")
def staffed(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Staffed]:
    directory = tmp_path_factory.mktemp("staffed")
    password = secrets.token_urlsafe()
    with fresh_database(directory) as url:
        service = Service(url, settings=QUICK_PASSWORDS | LIMITS, log=directory / "log")
        service.create_demo_payments(PAYMENTS)
        service.create_superuser("staff", password=password)
        with service.serving():
            yield Staffed(service, browser, password)
