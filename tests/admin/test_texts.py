"""Texts with control characters for the writing direction, in the pages of payments."""

import json
import re
from datetime import UTC, datetime
from html import unescape
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from payments.models import Payment
from payments.templatetags.texts import highlighted, isolated, isolated_json, linked, local, short_time
from tests.support.factories import OrganizationFactory, PaymentFactory

LIST = "/admin/payments/payment/"
PAGE = f"{LIST}pt_5F1/change/"

CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
HOSTILE = "Order \u202e<b>7"
ISOLATED = (
    '<bdi>Order <bdi class="control" data-code="U+202E" title="right-to-left override">\u202e</bdi>&lt;b&gt;7</bdi>'
)


def text_of(html: str) -> str:
    """Return the text of HTML: what a user copies."""
    return unescape(re.sub(r"<[^>]+>", "", html))


@pytest.mark.parametrize("control", CONTROLS)
def test_control_character_is_marked_with_its_code(control: str) -> None:
    html = isolated(f"a{control}b")

    assert f'data-code="U+{ord(control):04X}"' in html
    assert text_of(html) == f"a{control}b"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (HOSTILE, ISOLATED.replace("&gt;7", "&gt;<mark>7</mark>")),
        ("<mark>", "<bdi>&lt;mark&gt;</bdi>"),
        ("7-7", "<bdi><mark>7</mark>-<mark>7</mark></bdi>"),
        ("", "<bdi></bdi>"),
        ("x" * 81, f"<bdi>{'x' * 79}…</bdi>"),
        (f"{'x ' * 50}7 y", "<bdi>…<mark>7</mark> y</bdi>"),
        (f"{'x ' * 50}7 {'y' * 90}", f"<bdi>…<mark>7</mark> {'y' * 76}…</bdi>"),
    ],
)
def test_marked_words_are_in_an_escaped_excerpt(text: str, html: str) -> None:
    assert highlighted(text, lambda piece: piece == "7") == html


@pytest.mark.parametrize("text", ["", "Order 7", "שלום", "\u200b", "\u202f", "\u2065", "é&<'\""])
def test_text_without_control_characters_has_no_marks(text: str) -> None:
    html = isolated(text)

    assert "control" not in html
    assert text_of(html) == text


@pytest.mark.parametrize(
    "value",
    [{}, {"a\u202e": ["\u2069b", 1, None]}, {'quoted "\u202e" \\': "\\"}, {"<b>&amp;": "&lt;'"}, {"lines": "a\nb\t"}],
)
def test_isolated_document_has_the_text_of_the_document(value: Any) -> None:
    document = json.dumps(value, ensure_ascii=False, indent=2)

    assert text_of(isolated_json(document)) == document


def test_each_string_of_a_document_is_isolated() -> None:
    html = isolated_json('{"a\u202e": "\u202eb"}')

    mark = '<bdi class="control" data-code="U+202E" title="right-to-left override">\u202e</bdi>'
    assert html == f'{{"<bdi>a{mark}</bdi>": "<bdi>{mark}b</bdi>"}}'


@pytest.mark.parametrize("scheme", ["https", "myapp"])
def test_url_is_isolated(scheme: str) -> None:
    html = linked(f"{scheme}://shop.example/\u202egpj")

    assert ">\u202e</bdi>gpj</bdi>" in html
    assert html.startswith("<a href=" if scheme == "https" else "<bdi>")


def test_pages_isolate_the_texts_of_payments(admin_client: Client, db: None) -> None:
    PaymentFactory.create(
        id="pt_1",
        organization=OrganizationFactory.create(name=HOSTILE),
        description=HOSTILE,
        metadata=json.dumps({HOSTILE: HOSTILE}, ensure_ascii=False),
        details=json.dumps({"cardHolder": HOSTILE}, ensure_ascii=False),
    )

    payment_list = admin_client.get(LIST).content.decode()
    page = admin_client.get(PAGE).content.decode()

    assert payment_list.count(ISOLATED) == 2 + 3  # description and customer; the organization in header, menu and title
    assert page.count(ISOLATED) == 6 + 4 + 2  # in the API response too, but for the organization; the card holder twice


def test_page_shows_the_api_response_unchanged(admin_client: Client, db: None) -> None:
    PaymentFactory.create(id="pt_1", description=HOSTILE)
    Payment.objects.update(metadata='{"a\\"\\\\":"\u2066\\n"}')

    page = admin_client.get(PAGE)

    record = re.search(r'<pre id="record">(.*?)</pre>', page.content.decode(), re.DOTALL)
    assert record is not None
    assert text_of(record[1]) == page.context["api_response"]


@pytest.mark.parametrize(
    ("time", "zone", "shown", "utc"),
    [
        ("2026-10-25T00:30:00.999", "Europe/Amsterdam", "2026-10-25 02:30:00", "2026-10-25 00:30:00"),
        ("2026-10-30T23:30:00", "Asia/Kathmandu", "2026-10-31 05:15:00", "2026-10-30 23:30:00"),
        ("0001-01-01T12:00:00", "UTC", "0001-01-01 12:00:00", "0001-01-01 12:00:00"),
        ("0001-01-01T00:00:00", "America/New_York", "0001-01-01 00:00:00", "0001-01-01 00:00:00"),
        ("9999-12-31T23:59:59.999", "Asia/Kathmandu", "9999-12-31 23:59:59", "9999-12-31 23:59:59"),
    ],
)
def test_time_is_local_with_utc_as_its_tooltip(time: str, zone: str, shown: str, utc: str) -> None:
    element = local(datetime.fromisoformat(time).replace(tzinfo=UTC), ZoneInfo(zone))

    assert element.endswith(f'" title="{utc} UTC">{shown}</time>')


@pytest.mark.parametrize(("year", "text"), [(2024, "Sun 3 Mar 2024 01:05"), (None, "[MTWFS][a-z]{2} 3 Mar 01:05")])
def test_time_of_a_list_has_the_weekday_and_another_year(year: int | None, text: str) -> None:
    moment = datetime(year or datetime.now(UTC).year, 3, 3, 0, 5, 7, tzinfo=UTC)

    html = short_time(moment, ZoneInfo("Europe/Amsterdam"))

    assert re.search(rf'title="{moment.year}-03-03 01:05:07, {moment.year}-03-03 00:05:07 UTC">{text}</time>', html)
