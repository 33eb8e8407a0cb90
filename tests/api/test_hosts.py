"""Requests to a host that is not allowed: the response, and the line in the log."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from tests.support.problem import assert_problem, problem

pytestmark = pytest.mark.once

NOT_ALLOWED = "This host is not allowed. Check the URL, or add the host to ALLOWED_HOSTS."
MALFORMED = "This request is malformed. Check the Host header and the URL."
API = ["/v2/payments", "/v2/payments/pt_1", "/v2/payments/changes", "/v2/refunds", "/v2"]
PAGES = ["/", "/docs/", "/admin/", "/admin/login/", "/nothing", "/static/docs/icon.svg", "/favicon.ico"]
MALFORMED_HOSTS = [
    "",
    "a b",
    "a_b",
    "a\nb",
    "a.example:80:80",
    "user@a.example",
    "testserver:" + "9" * 5000,
    "a" * 5000,
]


def problem_of_host(detail: str) -> dict[str, Any]:
    expected = problem(400, "Bad Request", detail)
    expected["_links"]["documentation"]["href"] = "/docs/reference/#errors"
    return expected


def log_line(host: str) -> str:
    return f"Refused a request to the host {host}. If it is this service, add it to ALLOWED_HOSTS."


@pytest.fixture(params=[False, True], ids=["production", "development"])
def debug(request: pytest.FixtureRequest, settings: Settings) -> None:
    settings.DEBUG = request.param


@pytest.mark.django_db
@pytest.mark.parametrize("path", API)
def test_api_says_that_the_host_is_not_allowed(
    client: Client, debug: None, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = client.get(path, headers={"Host": "Shop.example:8443"})

    assert_problem(response, problem_of_host(NOT_ALLOWED))
    assert caplog.messages == [log_line("shop.example")]


@pytest.mark.parametrize("path", PAGES)
def test_page_says_that_the_host_is_not_allowed(
    client: Client, debug: None, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = client.get(path, headers={"Host": "shop.example"})

    assert (response.status_code, response.content.decode()) == (400, NOT_ALLOWED)
    assert response["Content-Type"] == "text/plain"
    assert caplog.messages == [log_line("shop.example")]


def test_redirect_to_tls_says_that_the_host_is_not_allowed(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True

    response = client.get("/admin/", headers={"Host": "shop.example"})

    assert (response.status_code, response.content.decode()) == (400, NOT_ALLOWED)


def test_forwarded_host_is_named_behind_a_proxy(
    client: Client, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.USE_X_FORWARDED_HOST = True

    client.get("/admin/", headers={"Host": "testserver", "X-Forwarded-Host": "shop.example"})

    assert caplog.messages == [log_line("shop.example")]


@pytest.mark.django_db
@pytest.mark.parametrize("host", MALFORMED_HOSTS)
def test_malformed_host_is_not_logged(client: Client, host: str, caplog: pytest.LogCaptureFixture) -> None:
    response, page = (client.get(path, headers={"Host": host}) for path in ("/v2/payments", "/admin/"))

    assert_problem(response, problem_of_host(MALFORMED))
    assert (page.status_code, page.content.decode()) == (400, MALFORMED)
    assert caplog.messages == []


def test_neither_response_nor_log_reveals_the_allowed_hosts(
    client: Client, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ALLOWED_HOSTS = ["secret.example"]

    responses = [client.get(path, headers={"Host": "shop.example"}) for path in ("/v2/refunds", "/admin/")]

    assert [response.status_code for response in responses] == [400, 400]
    assert "secret.example" not in "".join([*(response.content.decode() for response in responses), caplog.text])


def test_allowed_host_is_served_without_a_line(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    response = client.get("/admin/login/", headers={"Host": "testserver"})

    assert response.status_code == 200
    assert caplog.messages == []
