"""Error pages: HTML for browsers, the text for other clients, a problem for the API's paths."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any, NoReturn

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import DisallowedHost, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import clear_script_prefix

from payments.api.hosts import MALFORMED, NOT_ALLOWED
from payments.service import error_pages
from tests.support.api import wsgi_application

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
REQUEST_ID = "0123456789abcdef"

Respond = Callable[[HttpRequest], HttpResponse]


def raised(error: Exception) -> Respond:
    """Return a function that responds to this error of a view."""

    def respond(request: HttpRequest) -> HttpResponse:
        try:
            fail(error)
        except type(error):
            return error_pages.server_error(request)

    return respond


def fail(error: Exception) -> NoReturn:
    raise error


# Without access to the database: pytest-django refuses it, because the tests do not ask for it.
RESPONSES = {
    400: lambda request: error_pages.bad_request(request, SuspiciousOperation()),
    403: lambda request: error_pages.permission_denied(request, PermissionError()),
    404: lambda request: error_pages.page_not_found(request, Http404()),
    500: raised(ZeroDivisionError()),
    503: raised(OperationalError("the connection is closed")),
}


def request(path: str = "/admin/", **headers: str) -> HttpRequest:
    return RequestFactory().get(path, headers={"X-Request-ID": REQUEST_ID, **headers})


def visible_text(response: Any) -> str:
    body = response.content.decode().partition("<body")[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.mark.parametrize("status", RESPONSES)
def test_browser_gets_a_page_with_a_way_back_and_the_request_id(status: int) -> None:
    response = RESPONSES[status](request(Accept=BROWSER))

    html = response.content.decode()
    assert (response.status_code, response["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert '<a class="button" href="/admin/">' in html
    assert f"<code>{REQUEST_ID}</code>" in html
    assert not re.search(r"<style|style=|<script>| on\w+=", html)
    assert status == 404 or "Accept" in response["Vary"]


@pytest.mark.parametrize("accept", ["*/*", "application/json"])
def test_unknown_address_has_a_page_for_all_clients(accept: str) -> None:
    response = RESPONSES[404](request(Accept=accept))

    assert (response.status_code, response["Content-Type"]) == (404, "text/html; charset=utf-8")


@pytest.mark.parametrize("accept", ["*/*", "text/plain", "", "application/json"])
@pytest.mark.parametrize("status", sorted(RESPONSES.keys() - {404}))
def test_other_client_gets_the_text_of_the_page(status: int, accept: str) -> None:
    page = RESPONSES[status](request(Accept=BROWSER))

    response = RESPONSES[status](request(Accept=accept))

    assert (response.status_code, response["Content-Type"]) == (status, "text/plain")
    assert response.content.decode() in visible_text(page)
    assert response.headers.get("Retry-After") == page.headers.get("Retry-After")


@pytest.mark.parametrize("status", [400, 403, 404, 500, 503])
def test_path_of_the_api_gets_a_problem_even_in_a_browser(status: int) -> None:
    response = RESPONSES[status](request("/v2/payments", Accept=BROWSER))

    assert (response.status_code, response["Content-Type"]) == (status, "application/problem+json")


@pytest.mark.parametrize(("host", "hint"), [("shop.example", NOT_ALLOWED), ("a b", MALFORMED)])
def test_page_for_a_wrong_host_keeps_its_hint(client: Client, host: str, hint: str) -> None:
    response = client.get("/admin/", headers={"Accept": BROWSER, "Host": host})

    assert response.status_code == 400
    assert hint in visible_text(response)
    assert host not in visible_text(response)


def test_refused_host_that_is_reported_by_django_has_a_hint() -> None:
    refused = request(Accept=BROWSER, Host="shop.example")

    assert NOT_ALLOWED in visible_text(error_pages.bad_request(refused, DisallowedHost()))


def test_unknown_page_and_refused_page_are_error_pages(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))

    unknown = client.get("/admin/nothing/", headers={"Accept": BROWSER})
    refused = client.get("/admin/payments/payment/", headers={"Accept": BROWSER})

    assert (unknown.status_code, refused.status_code) == (404, 403)
    assert "Not found 404" in visible_text(unknown)
    assert "Forbidden 403" in visible_text(refused)


def test_form_without_a_token_gets_an_error_page(db: None) -> None:
    response = Client(enforce_csrf_checks=True).post("/admin/login/", headers={"Accept": BROWSER})

    assert response.status_code == 403
    assert "The form has expired" in visible_text(response)


@pytest.fixture
def mounted() -> Iterator[None]:
    """Forget afterwards where the application of the test is mounted."""
    yield
    clear_script_prefix()


def test_refused_body_gets_an_error_page_below_the_mount_path(mounted: None) -> None:
    environ = RequestFactory().post("/admin/login/", headers={"Accept": BROWSER}).environ
    status: list[str] = []

    (body,) = wsgi_application()(
        environ | {"CONTENT_TYPE": "x" * 300, "SCRIPT_NAME": "/shop"}, lambda line, _fields: status.append(line)
    )

    assert status == ["400 Bad Request"]
    assert b'href="/shop/admin/"' in body
