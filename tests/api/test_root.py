"""GET /: the address that leads to all others."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from tests.support.api import BROWSER, Api
from tests.support.exchange import Request, send_request
from tests.support.service import Service

pytestmark = [pytest.mark.once, pytest.mark.xdist_group("service")]


def root_document(base: str) -> dict[str, Any]:
    return {
        "_links": {
            "self": {"href": f"{base}/", "type": "application/hal+json"},
            "payments": {"href": f"{base}/v2/payments", "type": "application/hal+json"},
            "changes": {"href": f"{base}/v2/payments/changes", "type": "application/hal+json"},
            "documentation": {"href": f"{base}{reverse('payments:documentation')}", "type": "text/html"},
        }
    }


@pytest.mark.parametrize(
    "accept",
    [
        "application/hal+json",
        "application/json",
        "application/hal+json, application/json;q=0.9, */*;q=0.8",
        "application/hal+json, text/html",
        "text/html;q=0.5, */*",
        "*/*",
        "",
        "application/xml",
        "nonsense",
        None,
    ],
)
def test_program_gets_links_without_a_key(client: Client, accept: str | None) -> None:
    response = client.get("/", headers={} if accept is None else {"Accept": accept})

    assert response.status_code == 200
    assert response["Content-Type"] == "application/hal+json"
    assert response["Vary"] == "Accept"
    assert response.json() == root_document("http://testserver")


@pytest.mark.parametrize("accept", [BROWSER, "text/html", "text/html, application/json;q=0.1"])
def test_browser_is_redirected_to_the_documentation(client: Client, accept: str) -> None:
    response = client.get("/", headers={"Accept": accept})

    assert (response.status_code, response["Location"]) == (302, reverse("payments:documentation"))
    assert response["Vary"] == "Accept"


def test_links_begin_with_the_public_base_url(client: Client, settings: Settings) -> None:
    settings.PAYMENTS_PUBLIC_BASE_URL = "https://pay.example"

    assert client.get("/").json() == root_document("https://pay.example")


def test_links_lead_to_the_list(api: Api) -> None:
    href = api.client.get("/").json()["_links"]["payments"]["href"]

    assert api.follow(href).status_code == 200


@pytest.mark.parametrize("accept", ["*/*", BROWSER])
def test_head_is_get_without_a_body(client: Client, accept: str) -> None:
    head, get = (request("/", headers={"Accept": accept}) for request in (client.head, client.get))

    assert head.status_code == get.status_code
    assert head.content == b""
    assert head.get("Content-Length") == get.get("Content-Length")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    response = client.generic(method, "/")

    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD")


def test_unknown_host_is_refused(client: Client) -> None:
    assert client.get("/", headers={"Host": "elsewhere.example"}).status_code == 400


def test_root_needs_no_database(client: Client) -> None:
    """pytest-django blocks the database, because this test does not request it."""
    assert client.get("/").status_code == 200


@pytest.mark.processes
def test_deployed_service_responds_in_the_same_way(service: Service) -> None:
    program = send_request(service.port, Request("GET /", (("Host", f"127.0.0.1:{service.port}"),)))
    browser = send_request(service.port, Request("GET /", (("Host", "127.0.0.1"), ("Accept", BROWSER))))

    assert (program.status, program.header("Content-Type")) == (200, "application/hal+json")
    assert f'"href":"{service.base_url}/v2/payments"'.encode() in program.body
    assert (browser.status, browser.header("Location")) == (302, reverse("payments:documentation"))


@pytest.mark.processes
def test_address_without_a_path_is_the_root(service: Service) -> None:
    response = send_request(service.port, Request("GET localhost:80", (("Host", f"127.0.0.1:{service.port}"),)))

    assert (response.status, response.header("Content-Type")) == (200, "application/hal+json")
