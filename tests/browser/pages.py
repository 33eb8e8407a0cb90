"""Pages that are watched while they are used."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tests.scale import IS_LONG

CHROMIUM = shutil.which("chromium")
WIDTHS = (1440, 390)
LOOKS = (
    (1440, False),
    (390, True),
    *(((1440, True), (390, False)) if IS_LONG else ()),
)  # width, and whether it is dark
HEIGHT = 900
TIMEOUT_MILLISECONDS = 10_000
BAD = {"serious", "critical"}


@contextmanager
def launched() -> Iterator[Browser]:
    """Give a browser. Playwright runs an event loop in this thread, where Django would otherwise refuse the ORM."""
    with sync_playwright() as playwright, patch.dict(os.environ, DJANGO_ALLOW_ASYNC_UNSAFE="true"):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Browser, base_url: str, *, width: int = WIDTHS[0], dark: bool = False, **options: Any
) -> Iterator[Page]:
    """Give a page, which is to have no error but of status, break no policy, and ask no other host for anything."""
    context = browser.new_context(
        base_url=base_url,
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if dark else "light",
        **options,
    )
    context.set_default_timeout(TIMEOUT_MILLISECONDS)
    page = context.new_page()
    errors: list[str] = []

    def watch_request(address: str) -> None:
        if not address.startswith((f"{base_url}/", "data:", f"blob:{base_url}/")):
            errors.append(address)

    page.on("console", lambda message: None if "status of 40" in message.text else errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: watch_request(request.url))
    yield page
    context.close()
    assert not errors, errors


def log_in(page: Page, *, user_name: str, password: str) -> None:
    page.goto("/admin/login/?next=/admin/")
    page.get_by_label("Username").fill(user_name)
    page.get_by_label("Password").fill(password)
    with page.expect_navigation():
        page.get_by_role("button", name="Log in").click()


def faults(page: Page) -> list[tuple[str, str, str]]:
    """Return what keeps somebody from using a page: what axe finds serious, and what reaches beyond its width.

    Axe puts styles into the page, which a policy forbids: the page is to be one that was opened with `bypass_csp`.
    """
    results = Axe().run(page, options={"preload": False, "resultTypes": ["violations"]}).response
    found = [
        (page.url, violation["id"], node["html"])
        for violation in results["violations"]
        if violation["impact"] in BAD
        for node in violation["nodes"]
    ]
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found + ([(page.url, "too wide", f"{width} px")] if width > 0 else [])
