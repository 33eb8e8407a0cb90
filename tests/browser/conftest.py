"""The browser, and the service with somebody who may see all of it."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from payments.demo import SHOPS
from tests.browser.pages import CHROMIUM, launched, log_in, opened
from tests.support.migrated import fresh_database
from tests.support.service import Service
from tests.support.tools import require

PAYMENTS = 12_000  # more than an export takes in one part


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    require(*CHROMIUM)
    with launched() as browser:
        yield browser


@dataclass
class Staffed:
    """The service as it is deployed, with demo payments and a user of the admin."""

    service: Service
    browser: Browser
    password: str

    @property
    def organization(self) -> int:
        return SHOPS[0].id

    @contextmanager
    def page(self, **options: Any) -> Iterator[Page]:
        """Give a page of somebody who has logged in."""
        with self.stranger(storage_state=self.logged_in, **options) as page:
            yield page

    @contextmanager
    def stranger(self, **options: Any) -> Iterator[Page]:
        with opened(self.browser, self.service.base_url, **options) as page:
            yield page

    @cached_property
    def logged_in(self) -> Any:
        """Return what a browser keeps that has logged in."""
        with self.stranger() as page:
            self.log_in(page)
            return page.context.storage_state()

    def log_in(self, page: Page, *, password: str = "") -> None:
        log_in(page, user_name="staff", password=password or self.password)


@pytest.fixture(scope="package")
def staffed(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Staffed]:
    directory = tmp_path_factory.mktemp("staffed")
    password = secrets.token_urlsafe()
    with fresh_database(directory) as url:
        service = Service(url, settings={"BAD_KEY_LIMIT": ""}, log=directory / "log")
        service.create_demo_payments(PAYMENTS)
        service.create_superuser("staff", password=password)
        with service.serving():
            yield Staffed(service, browser, password)
