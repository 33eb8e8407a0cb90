"""The browsable API of development: authentication, the pages, and unchanged responses to programs."""

import re
from base64 import b64encode
from html import unescape
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.db import OperationalError
from django.test import Client
from pytest_django import Settings

from payments.listing.filters import FILTERS
from payments.models import ApiKey, Organization
from tests.support.api import BROWSER, Api, key_text
from tests.support.factories import PaymentFactory
from tests.support.list_errors import failing_list_queries
from tests.support.problem import assert_problem, problem
from tests.support.service import Service, Walker

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("service")]

BASIC = 'Basic realm="payments", charset="UTF-8"'
BEARER = 'Bearer realm="payments"'
NO_KEY = "Send an API key: Authorization: Bearer <API_KEY>."


@pytest.fixture
def development(settings: Settings) -> None:
    settings.PAYMENTS_BROWSABLE_API = True


def basic(user_name: str, password: str = "") -> str:
    return f"Basic {b64encode(f'{user_name}:{password}'.encode()).decode()}"


def browse(client: Client, path: str, authorization: str | None) -> Any:
    """Return the response to a browser."""
    headers = {"Accept": BROWSER}
    return client.get(path, headers=headers | ({"Authorization": authorization} if authorization else {}))


def html_of(response: Any) -> str:
    assert response["Content-Type"] == "text/html; charset=utf-8"
    if response.status_code == 200:
        assert (response["Cache-Control"], response["Vary"]) == ("private, no-cache", "Accept, Authorization")
    page: str = response.content.decode()
    return page


def form_values(page: str) -> dict[str, str]:
    """Return the values of the form's text fields, by name."""
    inputs = re.findall(r'<input class="form-control" name="([^"]*)" value="([^"]*)"', page)
    return {unescape(name): unescape(value) for name, value in inputs}


def addresses(page: str) -> list[str]:
    """Return the addresses of the links in the document."""
    _, _, document = page.partition('<pre class="response-info')
    document, _, _ = document.partition("</pre>")
    return [unescape(address) for address in re.findall(r'<a href="([^"]*)"', document)]


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (BROWSER, "text/html; charset=utf-8"),
        ("*/*", "application/hal+json"),
        ("application/json", "application/hal+json"),
        ("application/hal+json, text/html", "application/hal+json"),
    ],
)
def test_client_that_prefers_html_gets_a_page(api: Api, development: None, accept: str, media_type: str) -> None:
    response = api.send("GET", "/v2/payments", Accept=accept)

    assert response.status_code == 200
    assert response["Content-Type"] == media_type


def test_browser_sends_the_key_as_user_name(client: Client, key: ApiKey, development: None) -> None:
    response = browse(client, "/v2/payments", basic(key_text(key)))

    assert response.status_code == 200
    assert "&quot;count&quot;: 0" in html_of(response)


@pytest.mark.parametrize("path", ["/v2/payments", "/v2/payments/pt_1"])
def test_browser_without_a_key_is_asked_for_a_user_name(client: Client, db: None, development: None, path: str) -> None:
    response = browse(client, path, None)

    assert (response.status_code, response["WWW-Authenticate"]) == (401, BASIC)
    assert "the key is the user name that the browser asks for" in html_of(response)


def test_browser_with_an_invalid_key_is_asked_again(client: Client, key: ApiKey, development: None) -> None:
    text = key_text(key)
    not_utf_8 = b64encode(b"\xff:").decode()
    invalid = [basic("nonsense"), basic(""), basic(text[:-1]), basic("", text), basic(text, "password")]
    invalid += ["Basic", "Basic -", f"Basic {text}", f"Basic {not_utf_8}", f"{basic(text)}x"]

    responses = [browse(client, "/v2/payments", authorization) for authorization in invalid]

    assert {(response.status_code, response["WWW-Authenticate"]) for response in responses} == {(401, BASIC)}
    assert all("This API key is invalid." in html_of(response) for response in responses)
    assert not any(text in html_of(response) for response in responses)


@pytest.mark.parametrize(
    ("authorization", "detail", "challenge"),
    [
        (None, NO_KEY, BEARER),
        (basic("nonsense"), NO_KEY, BEARER),
        ("Bearer nonsense", "This API key is invalid.", f'{BEARER}, error="invalid_token"'),
    ],
)
@pytest.mark.usefixtures("db", "development")
def test_program_gets_the_responses_of_production(
    client: Client, authorization: str | None, detail: str, challenge: str
) -> None:
    response = client.get("/v2/payments", headers={"Authorization": authorization} if authorization else {})

    assert_problem(response, problem(401, "Unauthorized", detail))
    assert response["WWW-Authenticate"] == challenge


def test_program_cannot_use_basic_authentication(client: Client, key: ApiKey, development: None) -> None:
    response = client.get("/v2/payments", headers={"Authorization": basic(key_text(key))})

    assert response.status_code == 401


@pytest.mark.processes
def test_production_has_no_pages_and_no_basic_authentication(service: Service) -> None:
    service.create_organization(7101, name="Browsing")
    key = service.create_api_key(organization=7101, mode="live")
    with Walker(service.base_url, key) as walker:
        responses = [
            walker.send("/v2/payments", Authorization=basic(key), Accept=accept)
            for accept in (BROWSER, "*/*", "text/html")
        ]

    assert [response.status for response, _ in responses] == [401, 401, 406]
    assert [response.getheader("WWW-Authenticate") for response, _ in responses] == [BEARER, BEARER, None]
    assert {response.getheader("Content-Type") for response, _ in responses} == {"application/problem+json"}


def test_every_link_of_the_document_is_an_html_link(api: Api, development: None, organization: Organization) -> None:
    PaymentFactory.create_batch(3, organization=organization, metadata='{"a b":"é&\\"<i>"}')
    query = "limit=1&metadata%5Ba%20b%5D=%C3%A9%26%22%3Ci%3E&createdAt%5Bgte%5D=2000-01-01T00%3A00%3A00%2B01%3A00"
    first = api.send("GET", f"/v2/payments?{query}").json()
    second = api.follow(first["_links"]["next"]["href"]).json()

    page = html_of(api.send("GET", second["_links"]["self"]["href"], Accept=BROWSER))

    [record] = second["_embedded"]["payments"]
    assert addresses(page) == [
        *(record["_links"][name]["href"] for name in ("self", "dashboard", "documentation")),
        *(second["_links"][name]["href"] for name in ("self", "previous", "next", "documentation")),
    ]


def test_only_addresses_of_the_service_are_html_links(api: Api, development: None, organization: Organization) -> None:
    hostile = '{"href":"javascript:alert(1)","a":"\\"href\\": \\"https://elsewhere.example\\"","b":"<script>"}'
    PaymentFactory.create(id="pt_1", organization=organization, metadata=hostile)

    page = html_of(api.send("GET", "/v2/payments/pt_1", Accept=BROWSER))

    assert [address for address in addresses(page) if not address.startswith("http://testserver/")] == []
    assert "&quot;b&quot;: &quot;&lt;script&gt;&quot;" in page


@pytest.mark.parametrize(("sort", "previous", "next_"), [("desc", "Newer", "Older"), ("asc", "Older", "Newer")])
@pytest.mark.usefixtures("development")
def test_pager_links_to_previous_and_next(
    api: Api, organization: Organization, sort: str, previous: str, next_: str
) -> None:
    PaymentFactory.create_batch(3, organization=organization)
    first = api.get(limit=1, sort=sort).json()
    second = api.follow(first["_links"]["next"]["href"]).json()

    page = html_of(api.send("GET", second["_links"]["self"]["href"], Accept=BROWSER))

    pager = [tuple(map(unescape, groups)) for groups in re.findall(r'<a href="([^"]*)" rel="(\w+)">([^<]*)</a>', page)]
    assert (
        pager
        == [
            (second["_links"]["previous"]["href"], "prev", f"← {previous}"),
            (second["_links"]["next"]["href"], "next", f"{next_} →"),
        ]
        * 2
    )


def test_pager_of_the_feed_leads_to_the_next_page_and_to_later_changes(
    api: Api, development: None, organization: Organization
) -> None:
    PaymentFactory.create_batch(2, organization=organization)

    def pager(path: str) -> list[str]:
        page = html_of(api.send("GET", path, Accept=BROWSER))
        return [unescape(href) for href in re.findall(r'<li class="next">\s*<a href="([^"]*)"', page)]

    first, last = (api.get("/v2/payments/changes", limit=limit).json()["_links"] for limit in (1, 2))
    assert pager("/v2/payments/changes?limit=1") == [first["next"]["href"]] * 2
    assert pager("/v2/payments/changes?limit=2") == [last["later"]["href"]] * 2


def test_list_leads_to_the_feed(api: Api, development: None) -> None:
    assert '<a href="/v2/payments/changes">' in html_of(api.send("GET", "/v2/payments", Accept=BROWSER))


def test_pager_of_a_single_page_has_no_links(api: Api, development: None) -> None:
    page = html_of(api.send("GET", "/v2/payments", Accept=BROWSER))

    assert 'rel="' not in page.partition("<body")[2]
    assert page.count("<span>&larr; Newer</span>") == page.count("<span>Older &rarr;</span>") == 2


@pytest.mark.parametrize("path", ["/v2/payments?limit=1&status=open,pending", "/v2/payments/pt_1"])
def test_page_has_the_curl_command_for_its_document(
    api: Api, development: None, organization: Organization, path: str
) -> None:
    PaymentFactory.create(id="pt_1", organization=organization, status="open")

    page = unescape(html_of(api.send("GET", path, Accept=BROWSER)))

    href = api.send("GET", path).json()["_links"]["self"]["href"]
    assert f'curl -H "Authorization: Bearer $KEY" "{href}"' in page


def test_form_has_every_parameter_with_its_value(api: Api, development: None) -> None:
    query = "status=open&createdAt%5Bgte%5D=2026-01-01&metadata%5B%22%3E%5D=%3Cb%3E&sort=asc&limit=5"

    page = html_of(api.send("GET", f"/v2/payments?{query}", Accept=BROWSER))

    names = {"limit", *(name for name in FILTERS if name != "metadata"), 'metadata[">]'}
    values = {"limit": "5", "status": "open", "createdAt[gte]": "2026-01-01", 'metadata[">]': "<b>"}
    assert form_values(page) == dict.fromkeys(names, "") | values
    assert "<option selected>asc</option>" in page
    assert '<details class="panel panel-default" open>' in page
    assert '<a class="btn btn-default" href="/v2/payments">Clear</a>' in page


def test_form_has_the_values_of_parameters_in_other_forms(api: Api, development: None) -> None:
    query = "status=open&status%5B%5D=pending,failed&method%5B0%5D=ideal&metadata=order:1&metadata%5B%5D=a:b:c"

    page = html_of(api.send("GET", f"/v2/payments?{query}", Accept=BROWSER))

    values = {"status": "open,pending,failed", "method": "ideal", "metadata[order]": "1", "metadata[a]": "b:c"}
    assert {name: value for name, value in form_values(page).items() if value} == values


def test_form_is_folded_without_filters(api: Api, development: None) -> None:
    assert '<details class="panel panel-default">' in html_of(api.send("GET", "/v2/payments?limit=5", Accept=BROWSER))


@pytest.mark.parametrize(
    ("query", "name", "detail"),
    [
        ("limit=0&status=open", "limit", "limit must be a whole number from 1 to 250."),
        ("status=x&limit=5", "status", "status must be open, pending"),
        ("amount%5Bgte%5D=1", "amount[gte]", "amount[gte] must be used together with currency."),
        ("metadata%5Ba%5D=", "metadata[a]", "metadata[a] must be at most 5 pairs"),
    ],
)
def test_error_page_marks_the_field_and_keeps_the_values(
    api: Api, development: None, query: str, name: str, detail: str
) -> None:
    response = api.send("GET", f"/v2/payments?{query}", Accept=BROWSER)

    page = html_of(response)
    pattern = r'name="([^"]*)"[^>]* aria-invalid="true".*?id="field-error">([^<]*)<'
    [(field, error)] = re.findall(pattern, page, re.DOTALL)
    assert response.status_code == 400
    assert (field, error[: len(detail)]) == (name, detail)
    assert page.count(detail) >= 3, "above, at the field, and in the document"
    assert "application/problem+json" in page
    assert form_values(page).items() >= dict(parse_qsl(query, keep_blank_values=True)).items()


def test_error_page_marks_an_invalid_sort(api: Api, development: None) -> None:
    page = html_of(api.send("GET", "/v2/payments?sort=up", Accept=BROWSER))

    assert 'id="sort" aria-invalid="true"' in page


def test_page_of_an_unknown_payment_links_to_the_list(api: Api, development: None) -> None:
    response = api.send("GET", "/v2/payments/pt_1", Accept=BROWSER)

    page = html_of(response)
    assert response.status_code == 404
    assert "Not found. Check the path and the ID." in page
    assert '<li><a href="/v2/payments">Payments</a></li>' in page


def test_page_of_an_outage_keeps_the_values(api: Api, development: None) -> None:
    with failing_list_queries(OperationalError("the database went away")):
        response = api.send("GET", "/v2/payments?status=open", Accept=BROWSER)

    assert (response.status_code, response["Retry-After"]) == (503, "1")
    assert form_values(html_of(response))["status"] == "open"


def test_page_has_no_controls_that_do_not_work(api: Api, development: None) -> None:
    page = html_of(api.send("GET", "/v2/payments", Accept=BROWSER))

    assert [
        word for word in ("Log in", "OPTIONS</button>", "POST", "PUT", "csrf", "django-rest-framework") if word in page
    ] == []


def test_page_has_no_inline_code_and_loads_only_own_files(api: Api, development: None) -> None:
    page = html_of(api.send("GET", "/v2/payments?limit=0", Accept=BROWSER))

    assert re.findall(r"<style|<script(?! src=)| style=| on\w+=", page) == []
    assert re.findall(r'(?:src|<link [^>]*href)="(?!/static/|data:,)([^"]*)', page) == []
