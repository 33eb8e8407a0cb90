"""Pages that are watched while they are used."""

import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.scale import IS_LONG
from tests.support.tools import first_installed

# chromium-headless-shell is Chromium without a window. It needs half the processor time.
CHROMIUM: Final = ("chromium-headless-shell", "chromium")
WIDTHS = (1440, 390)
Look = tuple[int, bool]  # width, and whether it is dark
LOOKS: Final[tuple[Look, ...]] = (
    (1440, False),
    (390, True),
    *(((1440, True), (390, False)) if IS_LONG else ()),
)
HEIGHT = 900
TIMEOUT_MILLISECONDS = 10_000
BAD = {"serious", "critical"}


@contextmanager
def launched() -> Iterator[Browser]:
    """Give a browser. Playwright runs an event loop in this thread, where Django would otherwise refuse the ORM."""
    with sync_playwright() as playwright, patch.dict(os.environ, DJANGO_ALLOW_ASYNC_UNSAFE="true"):
        browser = playwright.chromium.launch(executable_path=first_installed(*CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, base_url: str, *, width: int = WIDTHS[0], **options: Any) -> Iterator[Page]:
    """Give a page, which is to have no error but of status, break no policy, and ask no other host for anything."""
    context = browser.new_context(base_url=base_url, viewport={"width": width, "height": HEIGHT}, **options)
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


Fault = tuple[str, str, str]  # address, kind of fault, element or size


def faults(page: Page, paths: Iterable[str]) -> list[Fault]:
    """Open pages and return their faults: serious accessibility problems, and content wider than the page.

    Each page is loaded once and shown in all looks. Axe checks it in one of them; in a long run, in all.
    """
    found: list[Fault] = []
    for path, checked in zip(paths, itertools.cycle(LOOKS), strict=False):
        page.goto(path)
        for look in LOOKS:
            show(page, look)
            found += too_wide(page)
            if look == checked or IS_LONG:
                found += violations(page)
    return found


def show(page: Page, look: Look) -> None:
    """Show a page in another width and colour scheme, and skip colour transitions."""
    width, dark = look
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.evaluate("document.getAnimations().forEach((animation) => animation.finish())")


def too_wide(page: Page) -> list[Fault]:
    """Return a fault if the content is wider than the page."""
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [(page.url, "too wide", f"{width} px")] if width > 0 else []


def violations(page: Page) -> list[Fault]:
    """Return the serious problems that axe finds.

    Axe puts styles into the page, which a policy forbids: the page is to be one that was opened with `bypass_csp`.
    """
    results = Axe().run(page, options={"preload": False, "resultTypes": ["violations"]}).response
    return [
        (page.url, violation["id"], node["html"])
        for violation in results["violations"]
        if violation["impact"] in BAD
        for node in violation["nodes"]
    ]
