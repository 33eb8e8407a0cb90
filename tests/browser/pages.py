"""Browser pages that report errors, and checks of accessibility and width."""

import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.scale import IS_LONG
from tests.support.tools import first_installed
from tests.support.waiting import SECONDS_MAX

# chromium-headless-shell is Chromium without a window, which needs half the processor time.
CHROMIUM: Final = ("chromium-headless-shell", "chromium")
WIDTHS = (1440, 390)
Look = tuple[int, bool]  # width, and whether the colour scheme is dark
LOOKS: Final[tuple[Look, ...]] = (
    (1440, False),
    (390, True),
    *(((1440, True), (390, False)) if IS_LONG else ()),
)
HEIGHT = 900
MILLISECONDS_MAX: Final = SECONDS_MAX * 1000
SERIOUS_IMPACTS = {"serious", "critical"}


@contextmanager
def launch_browser() -> Iterator[Browser]:
    """Start a browser. Playwright runs an event loop in this thread, in which Django otherwise refuses the ORM."""
    expect.set_options(timeout=MILLISECONDS_MAX)
    with sync_playwright() as playwright, patch.dict(os.environ, DJANGO_ALLOW_ASYNC_UNSAFE="true"):
        browser = playwright.chromium.launch(executable_path=first_installed(*CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def open_page(browser: Browser, base_url: str, *, width: int = WIDTHS[0], **options: Any) -> Iterator[Page]:
    """Open a page. Fail on script errors, policy violations and requests to other hosts; error statuses are allowed."""
    context = browser.new_context(base_url=base_url, viewport={"width": width, "height": HEIGHT}, **options)
    context.set_default_timeout(MILLISECONDS_MAX)
    page = context.new_page()
    errors: list[str] = []

    def check_request(address: str) -> None:
        if not address.startswith((f"{base_url}/", "data:", f"blob:{base_url}/")):
            errors.append(address)

    page.on("console", lambda message: None if "status of 40" in message.text else errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: check_request(request.url))
    yield page
    context.close()
    assert not errors, errors


def log_in(page: Page, *, user_name: str, password: str) -> None:
    page.goto("/admin/login/?next=/admin/")
    page.get_by_label("Username").fill(user_name)
    page.get_by_label("Password").fill(password)
    with page.expect_navigation():
        page.get_by_role("button", name="Log in").click()


Problem = tuple[str, str, str]  # address, kind of problem, element or size


def page_problems(page: Page, paths: Iterable[str]) -> list[Problem]:
    """Open pages and return their problems: serious accessibility problems, and content wider than the page.

    Each page is loaded once and shown in all looks. Axe checks it in one of them; in a long run, in all.
    """
    problems: list[Problem] = []
    for path, look_for_axe in zip(paths, itertools.cycle(LOOKS), strict=False):
        page.goto(path)
        for look in LOOKS:
            set_look(page, look)
            problems += overflow(page)
            if look == look_for_axe or IS_LONG:
                problems += violations(page)
    return problems


def set_look(page: Page, look: Look) -> None:
    """Show a page in another width and colour scheme, and skip colour transitions.

    Two frames later, its scripts have noticed the scheme, and the transitions have begun.
    """
    width, dark = look
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    page.evaluate("document.getAnimations().forEach((animation) => animation.finish())")


def overflow(page: Page) -> list[Problem]:
    """Return a problem if the content is wider than the page."""
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [(page.url, "too wide", f"{width} px")] if width > 0 else []


def violations(page: Page) -> list[Problem]:
    """Return the serious problems that axe finds.

    Axe adds styles, which the content security policy forbids, so the page must be opened with `bypass_csp`.
    """
    results = Axe().run(page, options={"preload": False, "resultTypes": ["violations"]}).response
    return [
        (page.url, violation["id"], node["html"])
        for violation in results["violations"]
        if violation["impact"] in SERIOUS_IMPACTS
        for node in violation["nodes"]
    ]
