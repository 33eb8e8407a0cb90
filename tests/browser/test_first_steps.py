"""The first steps of staff in a browser. The other modules need a service with many payments."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from payments.demo import SHOPS
from tests.browser.pages import log_in, open_page
from tests.support.migrated import fresh_database
from tests.support.service import QUICK_PASSWORDS, Service

pytestmark = [pytest.mark.once, pytest.mark.processes]


def test_staff_log_in_and_open_a_payment_of_the_list(browser: Browser, tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url:
        service = Service(url, settings=QUICK_PASSWORDS, log=tmp_path / "log")
        service.create_demo_payments(20)
        service.create_superuser("staff", password="for-tests-alone")
        with service.serving(), open_page(browser, service.base_url) as page:
            log_in(page, user_name="staff", password="for-tests-alone")
            page.goto(f"/admin/payments/payment/?organization={SHOPS[0].id}&mode=live")
            first = page.locator("th.id a").first
            payment_id = first.inner_text()

            first.click()

            expect(page.get_by_role("heading", name="Payment", exact=True)).to_be_visible()
            expect(page).to_have_title(re.compile(payment_id))
