"""A failed import, found in a browser."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Staffed
from tests.browser.pages import overflow, page_problems, set_look
from tests.support.commands import manage
from tests.support.lines import MISSING, line

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.xdist_group("browser"), pytest.mark.extended]


def test_failed_import_is_found_from_the_overview_by_keyboard(staffed: Staffed, tmp_path: Path) -> None:
    file = tmp_path / "night.jsonl"
    file.write_bytes(line(id="pt_import", description=MISSING, organizationId=f"{staffed.organization}"))
    manage("import_payments", f"{file}", url=staffed.service.database_url)

    with staffed.page(bypass_csp=True) as page:
        page.goto("/admin/")
        page.get_by_role("link", name="See the import").focus()
        page.keyboard.press("Enter")
        page.locator("td summary").first.focus()
        page.keyboard.press("Enter")

        expect(page.get_by_text("night.jsonl:1: description: is missing")).to_be_visible()
        problems = page_problems(page, ["/admin/", f"{page.url}&organization=404", page.url])

        set_look(page, (768, False))
        problems += overflow(page)

    assert problems == []
