"""Error pages: HTML for browsers, the text for other clients, a problem for the API's paths."""

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from html import unescape
from io import BytesIO
from typing import Any, NoReturn
from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import DisallowedHost, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import clear_script_prefix
from django.views.debug import technical_500_response
from pytest_django import Settings

from payments.api.errors import MALFORMED, NOT_ALLOWED
from payments.runtime.process import process
from payments.service import error_pages
from tests.support.api import BROWSER, Api, call_wsgi, wsgi_application
from tests.support.list_errors import failing_queries

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
    assert ('<a class="button" href="">Try again</a>' if status == 503 else '<a class="button" href="/admin/">') in html
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


def connect(parameters: dict[str, str], text: str) -> NoReturn:
    raise ZeroDivisionError


@pytest.mark.parametrize("accept", [BROWSER, "*/*"])
def test_page_for_developers_has_no_secret(db: None, settings: Settings, accept: str) -> None:
    settings.DEBUG = True
    refused, secret = request(Accept=accept), secrets.token_hex()
    environment = {"DATABASE_URL": f"postgresql://payments:{secret}@db.example/payments", "SHOP_CREDENTIALS": secret}

    with pytest.raises(ZeroDivisionError) as raised:
        connect({"host": "db.example", "password": secret}, f"host=db.example password={secret}")
    with patch.dict(os.environ, environment):
        refused.META |= os.environ  # as runserver does
        page = technical_500_response(refused, raised.type, raised.value, raised.tb.tb_next).content.decode()

    assert "ZeroDivisionError" in page
    assert "SHOP_CREDENTIALS" not in page
    assert secret not in page


@pytest.fixture
def mounted() -> Iterator[None]:
    """Forget afterwards where the application of the test is mounted."""
    yield
    clear_script_prefix()


TOKEN = "a" * 32  # of the cookie and the form
FORM = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": "application/x-www-form-urlencoded"}

# Requests with an error: the status of the response, and variables of WSGI. FAULT is a table whose queries fail.
ERRORS: dict[str, tuple[int, dict[str, str]]] = {
    "media type": (400, {"REQUEST_METHOD": "POST", "CONTENT_TYPE": "x" * 300}),
    "incomplete body": (400, {**FORM, "CONTENT_LENGTH": "9"}),
    "large body": (413, {**FORM, "CONTENT_LENGTH": "9" * 10}),
    "host": (400, {"HTTP_HOST": "shop.example"}),
    "malformed host": (400, {"HTTP_HOST": "a b"}),
    "too many fields": (400, {**FORM, "PATH_INFO": "/admin/auth/user/", "BODY": "a=1&" * 1001}),
    "look-up": (400, {"PATH_INFO": "/admin/payments/apikey/", "QUERY_STRING": "digest=1"}),
    "token": (403, {**FORM, "PATH_INFO": "/admin/auth/user/"}),
    "export": (400, {"PATH_INFO": "/admin/payments/payment/export.csv", "QUERY_STRING": "since=x"}),
    "export of nothing": (404, {"PATH_INFO": "/admin/payments/payment/export.csv", "QUERY_STRING": "from=pt_9"}),
    "method": (405, {"REQUEST_METHOD": "DELETE", "PATH_INFO": "/docs/", "HTTP_X_CSRFTOKEN": TOKEN}),
    "method of a probe": (405, {"REQUEST_METHOD": "DELETE", "PATH_INFO": "/healthz"}),
    "address": (404, {"PATH_INFO": "/nothing"}),
    "static file": (404, {"PATH_INFO": "/static/nothing"}),
    "page of the admin": (404, {"PATH_INFO": "/admin/nothing/"}),
    "bug": (500, {"FAULT": "payments_apikey", "PATH_INFO": "/admin/payments/apikey/"}),
    "outage": (503, {"FAULT": "payments_apikey", "PATH_INFO": "/admin/payments/apikey/"}),
    "outage of sessions": (503, {"FAULT": "payments_staffsession"}),
    "busy": (503, {"PATH_INFO": "/docs/"}),
    "no key": (401, {"PATH_INFO": "/v2/payments"}),
    "parameter": (400, {"PATH_INFO": "/v2/payments", "QUERY_STRING": "limit=0"}),
    "unknown payment": (404, {"PATH_INFO": "/v2/payments/pt_9"}),
    "path of the API": (404, {"PATH_INFO": "/v2/nothing"}),
    "method of the API": (405, {"REQUEST_METHOD": "DELETE", "PATH_INFO": "/v2/payments"}),
    "bug of the API": (500, {"FAULT": "payments_apikey", "PATH_INFO": "/v2/payments"}),
    "outage of the API": (503, {"FAULT": "payments_apikey", "PATH_INFO": "/v2/payments"}),
    "browsable page": (401, {"PATH_INFO": "/v2/payments", "HTTP_ACCEPT": BROWSER}),
}
SECURITY_HEADERS = {
    "Cache-Control",
    "Content-Security-Policy",
    "Cross-Origin-Opener-Policy",
    "Referrer-Policy",
    "X-Content-Type-Options",
    "X-Frame-Options",
}


@contextmanager
def fault(name: str, table: str) -> Iterator[None]:
    """Cause the error of this name: an exception in each query of the table, or occupied threads."""
    with ExitStack() as stack:
        if name == "busy":
            for _ in range(process.shares.public_pages_max):
                stack.enter_context(process.shares.public_pages("stranger"))
        elif table:
            error = ZeroDivisionError() if "bug" in name else OperationalError("the connection is closed")
            stack.enter_context(failing_queries(table, error))
        yield


@pytest.mark.once
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ERRORS)
def test_every_error_has_the_same_security_headers(
    admin_client: Client, api: Api, settings: Settings, mounted: None, name: str
) -> None:
    status, variables = ERRORS[name]
    is_api = variables.get("PATH_INFO", "").startswith("/v2")
    settings.PAYMENTS_BROWSABLE_API = name == "browsable page"
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 0.01 if name == "busy" else 60
    key = {"HTTP_AUTHORIZATION": api.authorization["Authorization"]} if is_api and status != 401 else {}
    cookie = (
        {"HTTP_COOKIE": f"sessionid={admin_client.session.session_key}; csrftoken={TOKEN}"} if name != "busy" else {}
    )
    body = variables.get("BODY", "").encode()
    environ = RequestFactory().get("/admin/").environ | {"CONTENT_LENGTH": str(len(body))} | cookie | key | variables

    with fault(name, variables.get("FAULT", "")):
        response = call_wsgi(wsgi_application(), environ | {"wsgi.input": BytesIO(body)})

    expected = {"Cache-Control", "X-Content-Type-Options"} if is_problem(response) else SECURITY_HEADERS
    assert response.status_code == status
    assert expected <= response.headers.keys()
    assert "no-store" in response.headers["Cache-Control"]
    assert (status == 503) is ("Retry-After" in response.headers)


def is_problem(response: HttpResponse) -> bool:
    return response["Content-Type"] == "application/problem+json"


def test_refused_body_gets_an_error_page_below_the_mount_path(mounted: None) -> None:
    environ = RequestFactory().post("/admin/login/", headers={"Accept": BROWSER}).environ
    status: list[str] = []

    (body,) = wsgi_application()(
        environ | {"CONTENT_TYPE": "x" * 300, "SCRIPT_NAME": "/shop"}, lambda line, _fields: status.append(line)
    )

    assert status == ["400 Bad Request"]
    assert b'href="/shop/admin/"' in body
