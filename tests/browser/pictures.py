"""The pictures of docs/images, taken of demo payments: `scripts/pictures`."""

import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page

from tests.browser.pages import launched, log_in, opened
from tests.support.processes import ROOT
from tests.support.service import Service

PAYMENTS = 40_000
ORGANIZATION = 1001  # the first of the demo's
IMAGES = ROOT / "docs/images"
USER = "demo"


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    password = secrets.token_urlsafe()
    with developed(password) as service:
        key = service.create_api_key(organization=ORGANIZATION, mode="live")
        credentials = {"username": key, "password": ""}
        with launched() as browser, opened(browser, service.base_url, http_credentials=credentials) as page:
            take(page, "reference", "/docs/reference/#list-payments")
            take(page, "browsable-api", "/v2/payments?limit=2")
            log_in(page, user_name=USER, password=password)
            take(page, "admin-overview", "/admin/")
            take(page, "admin-payments", "/admin/payments/payment/?status=failed&status=succeeded")
            for link in ("td.customer a", "th.id a"):
                with page.expect_navigation():
                    page.locator(link).first.click()
            take(page, "admin-payment")


@contextmanager
def developed(password: str) -> Iterator[Service]:
    """Serve demo payments as a developer does."""
    with tempfile.TemporaryDirectory(prefix="payments-pictures-") as directory:
        url = f"sqlite:///{directory}/payments.sqlite3"
        service = Service(url, settings={"DEBUG": "true"}, log=Path(directory) / "log")
        service.migrate()
        service.create_demo_payments(PAYMENTS)
        service.create_superuser(USER, password=password)
        with service.serving(".venv/bin/python", "manage.py", "runserver", f"127.0.0.1:{service.port}"):
            yield service


def take(page: Page, name: str, path: str | None = None) -> None:
    """Save what a page shows, without scrolling."""
    if path:
        page.goto(path)
    page.screenshot(path=IMAGES / f"{name}.png")
    sys.stderr.write(f"docs/images/{name}.png\n")
