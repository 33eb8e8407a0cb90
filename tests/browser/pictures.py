"""Takes the pictures in docs/images, with demo payments. `scripts/pictures` runs it."""

import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page

from tests.browser.pages import launch_browser, log_in, open_page
from tests.support.processes import ROOT
from tests.support.service import Service

PAYMENTS = 40_000
ORGANIZATION = 1001  # the first demo organization
IMAGES = ROOT / "docs/images"
USER = "demo"


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    password = secrets.token_urlsafe()
    with development_server(password) as service:
        key = service.create_api_key(organization=ORGANIZATION, mode="live")
        credentials = {"username": key, "password": ""}
        with launch_browser() as browser, open_page(browser, service.base_url, http_credentials=credentials) as page:
            take(page, "reference", "/docs/reference/#list-payments")
            take(page, "browsable-api", "/v2/payments?limit=2")
            log_in(page, user_name=USER, password=password)
            take(page, "admin-overview", "/admin/")
            take(page, "admin-payments", "/admin/payments/payment/?method=creditcard&method=ideal&period=30d")
            for link in ("td.customer a", "th.id a"):
                with page.expect_navigation():
                    page.locator(link).first.click()
            take(page, "admin-payment")


@contextmanager
def development_server(password: str) -> Iterator[Service]:
    """Serve demo payments with the development server."""
    with tempfile.TemporaryDirectory(prefix="payments-pictures-") as directory:
        url = f"sqlite:///{directory}/payments.sqlite3"
        service = Service(url, settings={"DEBUG": "true"}, log=Path(directory) / "log")
        service.migrate()
        service.create_demo_payments(PAYMENTS)
        service.create_superuser(USER, password=password)
        with service.serving(".venv/bin/python", "manage.py", "runserver", f"127.0.0.1:{service.port}"):
            yield service


def take(page: Page, name: str, path: str | None = None) -> None:
    """Save a picture of the visible part of a page."""
    if path:
        page.goto(path)
    page.screenshot(path=IMAGES / f"{name}.png")
    sys.stderr.write(f"docs/images/{name}.png\n")
