"""The Accept header: HAL under several names, or 406."""

import contextlib
import re
import time

import pytest
from django.test import Client
from rest_framework.renderers import BrowsableAPIRenderer

from payments.negotiation import accepted_qualities, kept_qualities
from payments.parameters import FILTERS
from payments.renderers import HALRenderer
from payments.views import PaymentList
from tests.api import Api

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
JAVA = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"


@pytest.mark.parametrize(
    "accept",
    [
        "application/hal+json",
        "application/json",
        "application/*",
        "*/*",
        "",
        " ",
        "APPLICATION/HAL+JSON",
        "application/json; charset=utf-8",
        "application/json;indent=4",
        "application/hal+json, application/json;q=0.9, */*;q=0.8",
        "text/html, application/json;q=0.1",
        "application/json, */*;q=0",
        "application/json, application/*;q=0",
        "application/json;q=0, */*",
        'application/json;x="a,b;q=0"',
        "application/json;x*=unheard-of''y",
        "application/json;q=0.3333",
        JAVA,
        BROWSER,
    ],
)
def test_whoever_accepts_json_gets_hal(api: Api, accept: str) -> None:
    response = api.send("GET", "/v2/payments", Accept=accept)

    assert response.status_code == 200
    assert response["Content-Type"] == "application/hal+json"


def test_a_missing_accept_header_accepts_hal(api: Api) -> None:
    assert api.get()["Content-Type"] == "application/hal+json"


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "application/xml",
        "application/problem+json",
        "image/*",
        "nonsense",
        ",",
        "*/*;q=0",
        "application/hal+json;q=0",
        "application/hal+json;q=0.0, application/json",
        "application/json;q=0",
        "application/*;q=0, */*",
        "application/json;q=abc",
        "application/json;q=nan",
        "application/json;q=2",
        "application/json;q=-1",
        "application/json;q=1_0",
        "application/json;q=.",
        "application/json;q",
    ],
)
def test_whoever_does_not_is_refused(api: Api, accept: str) -> None:
    response = api.send("GET", "/v2/payments", Accept=accept)

    assert response.status_code == 406
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("quoted", [";", '\\"'])
def test_a_long_header_is_read_at_once(quoted: str) -> None:
    start = time.perf_counter()

    accepted_qualities(f'application/json;x="{quoted * 100_000}')

    assert time.perf_counter() - start < 1


def test_a_long_header_is_not_kept(api: Api) -> None:
    kept = kept_qualities.cache_info().currsize

    api.send("GET", "/v2/payments", Accept=f"application/json;x={'a' * 1000}")

    assert kept_qualities.cache_info().currsize == kept


@pytest.fixture
def browsable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API as it is in development."""
    monkeypatch.setattr(PaymentList, "renderer_classes", [HALRenderer, BrowsableAPIRenderer])


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (BROWSER, "text/html; charset=utf-8"),
        ("*/*", "application/hal+json"),
        ("application/json", "application/hal+json"),
        ("application/hal+json, text/html", "application/hal+json"),
    ],
)
def test_in_development_a_browser_gets_a_page(api: Api, browsable: None, accept: str, media_type: str) -> None:
    response = api.send("GET", "/v2/payments", Accept=accept)

    assert response.status_code == 200
    assert response["Content-Type"] == media_type


def test_the_page_shows_the_document_and_its_links(api: Api, browsable: None) -> None:
    response = api.send("GET", "/v2/payments", Accept=BROWSER)

    assert b"&quot;count&quot;: 0" in response.content
    assert b'href="http://testserver/v2/payments?limit=20"' in response.content


def test_the_page_has_a_form_for_the_filters_with_what_was_asked_for(api: Api, browsable: None) -> None:
    query = "status=open&createdAt%5Bgte%5D=2026-01-01&metadata%5B%22%3E%5D=%3Cb%3E&sort=asc&limit=5"

    page = api.send("GET", f"/v2/payments?{query}", Accept=BROWSER).content.decode()

    fields = dict(re.findall(r'<input [^>]*name="([^"]*)"[^>]* value="([^"]*)"', page))
    assert fields.keys() >= {*(name for name in FILTERS if name != "metadata"), "metadata[&quot;&gt;]"}
    assert {name: value for name, value in fields.items() if value} == {
        "limit": "5",
        "status": "open",
        "createdAt[gte]": "2026-01-01",
        "metadata[&quot;&gt;]": "&lt;b&gt;",
    }
    assert "<option selected>asc</option>" in page


def test_the_forms_script_is_served(client: Client, db: None) -> None:
    with contextlib.closing(client.get("/static/payments/filters.js")) as response:
        assert response.status_code == 200


def test_the_page_shows_a_refusal_too(api: Api, browsable: None) -> None:
    response = api.send("GET", "/v2/payments?limit=0", Accept=BROWSER)

    assert response.status_code == 400
    assert response["Content-Type"] == "text/html; charset=utf-8"
    assert b"limit must be a whole number" in response.content
