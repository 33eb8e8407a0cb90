"""A payment's page in a browser, with long texts and with control characters for the writing direction."""

import json
from typing import Any

import pytest

from tests.browser.conftest import Staffed
from tests.browser.pages import page_problems

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.xdist_group("browser"), pytest.mark.extended]

LIST = "/admin/payments/payment/"
ORGANIZATION = 9001
CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
DESCRIPTION = f"Order {CONTROLS}7"

# With an embedding or an isolate that has no end, and with an end that has no start.
UNBALANCED = ("\u202e", "\u2067\u202e", "\u2069\u202e")

LONG = {
    "id": "pt_long",
    "description": "x" * 3000,
    "redirectUrl": f"https://shop.example/{'y' * 1900}",
    "webhookUrl": f"https://shop.example/{'z' * 1900}",
    "metadata": {"k" * 500: "v" * 1000, "w" * 70: "short"},
    "method": "vouchers",
    "details": {"n" * 300: "v" * 900},
    "customerId": f"ct_{'c' * 61}",
}
SHORT = {"description": DESCRIPTION, "metadata": {}, "redirectUrl": "https://shop.example/"}


def record(**values: Any) -> bytes:
    """Return a record for an import."""
    common = {
        "mode": "live",
        "amount": {"value": "10.00", "currency": "EUR"},
        "status": "failed",
        "organizationId": str(ORGANIZATION),
        "sequenceType": "oneoff",
        "createdAt": "2026-01-01T12:00:00.000",
    }
    return json.dumps({**common, **values}).encode()


@pytest.fixture(scope="module")
def hostile(staffed: Staffed) -> Staffed:
    """Import payments with long texts and with control characters."""
    unbalanced = [
        record(**SHORT | {"id": f"pt_u{number}", "description": f"{text}abc", "metadata": {text: f"{text}abc"}})
        for number, text in enumerate(UNBALANCED)
    ]
    staffed.service.create_organization(ORGANIZATION, name=f"Books {CONTROLS}{'o' * 150}")
    staffed.service.create_api_key(organization=ORGANIZATION, mode="live")
    staffed.service.import_records([record(**LONG), record(**SHORT, id="pt_controls"), *unbalanced])
    return staffed


def page_of(payment_id: str) -> str:
    return f"{LIST}{payment_id.replace('_', '_5F')}/change/"


def test_hostile_texts_fit_the_screen_and_are_accessible(hostile: Staffed) -> None:
    paths = (
        page_of("pt_long"),
        page_of("pt_controls"),
        f"{LIST}anonymize/?organization={ORGANIZATION}&customer=ct_{'c' * 61}",
        f"{LIST}?organization={ORGANIZATION}",
        f"{LIST}?organization={ORGANIZATION}&q=nothing",
        f"{LIST}?organization={ORGANIZATION}&mode=test",
        f"/admin/?organization={ORGANIZATION}",
        "/admin/payments/organization/",
        f"/admin/payments/organization/{ORGANIZATION}/change/",
        "/admin/payments/apikey/",
        "/admin/nothing/",
    )

    with hostile.page(bypass_csp=True) as page:
        problems = page_problems(page, [path for path in paths for _ in range(2)])  # axe checks both looks

    assert problems == []


def test_selected_text_is_the_true_text(hostile: Staffed) -> None:
    with hostile.page() as page:
        page.goto(page_of("pt_controls"))
        selected = page.evaluate(
            "(element => { getSelection().selectAllChildren(element); return getSelection().toString(); })"
            "(document.querySelector('.money .description'))"
        )
        codes = page.locator(".money .description .control").evaluate_all(
            "marks => marks.map(mark => mark.dataset.code)"
        )

        assert selected == DESCRIPTION
        assert codes == [f"U+{ord(control):04X}" for control in CONTROLS]


@pytest.mark.parametrize("has_javascript", [True, False])
def test_times_are_those_of_the_organization_in_every_browser(hostile: Staffed, has_javascript: bool) -> None:
    with hostile.page(timezone_id="Asia/Tokyo", java_script_enabled=has_javascript) as page:
        page.goto(page_of("pt_controls"))
        created = page.locator(".timeline .created")

        assert page.get_by_role("heading", name="Timeline (UTC)").count() == 1
        assert created.inner_text() == "Created 2026-01-01 12:00:00"
        assert created.locator("time").get_attribute("title") == "2026-01-01 12:00:00 UTC"


@pytest.mark.parametrize("number", range(len(UNBALANCED)))
def test_control_characters_do_not_reverse_the_text(hostile: Staffed, number: int) -> None:
    with hostile.page() as page:
        page.goto(page_of(f"pt_u{number}"))
        page.locator("details.panel summary").click()
        for places in ("header.money .description bdi", ".metadata td bdi", "#record bdi"):
            text = page.locator(places).filter(has_text="abc").first
            assert text.evaluate(LETTERS_FROM_LEFT_TO_RIGHT) == "abc"


# Returns the letters of the element's last text in the order in which they appear.
LETTERS_FROM_LEFT_TO_RIGHT = """(element) => {
    const text = element.lastChild;
    const left = (index) => {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + 1);
        return range.getBoundingClientRect().left;
    };
    return [...text.data].map((letter, index) => [left(index), letter]).sort((a, b) => a[0] - b[0])
        .map(([, letter]) => letter).join("");
}"""


def test_long_text_opens_without_a_script(hostile: Staffed) -> None:
    with hostile.page(java_script_enabled=False) as page:
        page.goto(page_of("pt_long"))
        summary = page.locator(".description summary")
        closed = summary.inner_text()
        summary.click()

        assert (closed[-10:], summary.inner_text()) == ("… Show all", "Show less")
        assert page.locator(".description details > bdi").inner_text() == LONG["description"]


def test_amounts_beside_long_texts_are_visible_at_1280_pixels(hostile: Staffed) -> None:
    with hostile.page(width=1280) as page:
        page.goto(f"{LIST}?organization={ORGANIZATION}&mode=live")
        boxes = [cell.bounding_box() for cell in page.locator("td.amount").all()]

    assert len(boxes) == 5
    assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= 1280 for box in boxes)
