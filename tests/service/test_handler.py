"""API requests without middleware get the same response as with all of Django's middleware."""

import gc
import io
import json
import logging
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from wsgiref.util import setup_testing_defaults

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.db import OperationalError
from django.test import Client, RequestFactory
from django.test.utils import override_script_prefix
from pytest_django import Settings

from payments.models import Organization
from tests.support.api import REQUEST_ID, Api, call_wsgi, wsgi_application
from tests.support.factories import PaymentFactory
from tests.support.list_errors import failing_list_queries

pytestmark = pytest.mark.once

# Headers that middleware adds to every page, and that API clients do not need.
PAGE_HEADERS = {"Content-Security-Policy", "Cross-Origin-Opener-Policy", "Referrer-Policy", "X-Frame-Options"}


def comparable(response: Any) -> tuple[int, bytes, dict[str, str]]:
    added = PAGE_HEADERS | {"X-Request-ID"}
    if response.status_code == HTTPStatus.NOT_MODIFIED:
        added.add("Content-Length")  # Django adds the length of the body it left out (RFC 9110, 8.6)
    headers = {name: value for name, value in response.items() if name not in added}
    return response.status_code, response.content, headers


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/v2/payments", {}),
        ("GET", "/v2/payments?limit=1&from=pt_1", {}),
        ("HEAD", "/v2/payments", {}),
        ("OPTIONS", "/v2/payments", {}),
        ("POST", "/v2/payments", {}),
        ("GET", "/v2/payments?limit=0", {}),
        ("GET", "/v2/payments", {"Accept": "text/html"}),
        ("GET", "/v2/payments", {"Authorization": "Bearer nonsense"}),
        ("GET", "/v2/payments", {"If-None-Match": "*"}),
        ("GET", "/v2/payments/pt_1", {}),
        ("GET", "/v2/payments/pt_none", {}),
        ("GET", "/v2", {}),
        ("GET", "/v2/", {}),
        ("GET", "/v2/refunds", {}),
        ("DELETE", "/v2/refunds", {}),
    ],
)
def test_api_response_is_the_same_as_with_djangos_middleware(
    api: Api, organization: Organization, method: str, path: str, headers: dict[str, str]
) -> None:
    PaymentFactory.create(id="pt_1", organization=organization)
    with_middleware = Api(Client(headers={"X-Request-ID": REQUEST_ID}), api.key)

    response, expected = (each.send(method, path, **headers) for each in (api, with_middleware))

    assert comparable(response) == comparable(expected)


@pytest.mark.parametrize(
    "path", ["/v2/payments", "/healthz", "/docs/", "/admin/login/", "/nothing", "/static/payments/admin.css"]
)
def test_response_to_head_has_no_body_whatever_the_server_does(db: None, path: str) -> None:
    get, head = (
        call_wsgi(wsgi_application(), {**RequestFactory().generic(method, path).environ, "wsgi.input": io.BytesIO()})
        for method in ("GET", "HEAD")
    )

    assert head.content == b""
    assert (head.status_code, head.headers.get("Content-Length")) == (
        get.status_code,
        get.headers.get("Content-Length", str(len(get.content))),
    )


def test_page_passes_through_djangos_middleware(client: Client, db: None) -> None:
    response = client.get("/admin/login/")

    assert response.headers.keys() >= PAGE_HEADERS
    assert "csrftoken" in response.cookies


@pytest.mark.parametrize("path", ["/admin/login/", "/docs/", "/docs/interactive/", "/nothing", "/admin/"])
def test_page_loads_only_its_own_files_and_cannot_be_framed(client: Client, db: None, path: str) -> None:
    response = client.get(path)

    policy = dict(rule.split(" ", 1) for rule in response["Content-Security-Policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:" if path == "/docs/interactive/" else "'self'",
        "font-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
    assert response["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.parametrize(("secure", "policy"), [(True, "max-age=60"), (False, None)])
def test_api_response_over_tls_has_the_hsts_header(
    client: Client, db: None, settings: Settings, secure: bool, policy: str | None
) -> None:
    settings.SECURE_HSTS_SECONDS = 60

    response = client.get("/v2/payments", secure=secure)

    assert response.headers.get("Strict-Transport-Security") == policy


@pytest.mark.parametrize(
    ("path", "headers", "messages"),
    [
        ("/v2/payments", {}, []),
        ("/v2/payments", {"If-None-Match": "*"}, []),
        ("/v2/payments?limit=0", {}, ["Bad Request: /v2/payments"]),
        ("/v2/payments", {"Host": "a b"}, ["Bad Request: /v2/payments"]),
        ("/v2/payments", {"Authorization": "nonsense"}, ["Unauthorized: /v2/payments"]),
        ("/v2/payments/pt_none", {}, ["Not Found: /v2/payments/pt_none"]),
        ("/v2/refunds", {}, ["Not Found: /v2/refunds"]),
    ],
)
def test_only_failed_api_requests_are_logged(
    api: Api, caplog: pytest.LogCaptureFixture, path: str, headers: dict[str, str], messages: list[str]
) -> None:
    """Our own configuration logs only server errors; an operator may want to log client errors too."""
    caplog.set_level(logging.WARNING, logger="django.request")

    api.send("GET", path, **headers)

    assert caplog.messages == messages
    assert {record.levelname for record in caplog.records} <= {"WARNING"}


def test_outage_has_no_second_line_in_the_log(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="django.request")

    with failing_list_queries(OperationalError("the server does not respond")):
        api.get()

    assert [record.name for record in caplog.records] == ["payments.api.errors"]


@pytest.mark.parametrize(
    "variables",
    [
        {"PATH_INFO": "/v2/payments", "QUERY_STRING": "limit=2&from=pt_1"},
        {"PATH_INFO": "/v2/payments/pt_1", "SCRIPT_NAME": "/shop", "REQUEST_METHOD": "head"},
        {"PATH_INFO": "/v2/caf\xc3\xa9\xff", "SCRIPT_NAME": "/caf\xc3\xa9", "wsgi.url_scheme": "https"},
        {"PATH_INFO": "/v2//payments", "HTTP_COOKIE": "a=b", "SERVER_PORT": "443"},
    ],
)
@pytest.mark.django_db(transaction=True)
@override_script_prefix("/")  # restores the prefix after the test
def test_any_environment_gets_the_response_of_djangos_handler(api: Api, variables: dict[str, str]) -> None:
    PaymentFactory.create(id="pt_1", organization=api.key.organization)
    environ: dict[str, Any] = {**variables, "HTTP_AUTHORIZATION": api.authorization["Authorization"]}
    environ |= {"HTTP_X_REQUEST_ID": REQUEST_ID, "wsgi.input": io.BytesIO()}
    setup_testing_defaults(environ)

    response, expected = (call_wsgi(application, environ) for application in (wsgi_application(), WSGIHandler()))

    assert comparable(response) == comparable(expected)


@pytest.mark.django_db(transaction=True)
def test_response_leaves_nothing_to_the_garbage_collector(api: Api, organization: Organization) -> None:
    PaymentFactory.create_batch(3, organization=organization)
    handler = wsgi_application()

    def get(query: str) -> list[bytes]:
        request = RequestFactory().get(f"/v2/payments?{query}", headers=api.authorization)
        body: list[bytes] = handler(request.environ, lambda *_status_and_headers: None)
        return body

    for query, status in (("limit=2", None), ("limit=0", HTTPStatus.BAD_REQUEST)):
        get(query)
        gc.collect()
        gc.disable()
        try:
            (body,) = get(query)
            unreachable = gc.collect()
        finally:
            gc.enable()

        assert json.loads(body).get("status") == status
        assert unreachable == 0, query


@pytest.mark.django_db(transaction=True)
@override_script_prefix("/")  # restores the prefix after the test
@pytest.mark.parametrize("script_names", [("/shop", ""), ("", "/shop"), ("/café", "")])
def test_links_begin_with_the_script_name_of_the_request(
    api: Api, organization: Organization, script_names: tuple[str, str]
) -> None:
    PaymentFactory.create(organization=organization)
    handler = wsgi_application()

    for script_name in script_names:
        request = RequestFactory().get("/v2/payments", headers=api.authorization)
        environ = request.environ | {"SCRIPT_NAME": script_name.encode().decode("latin-1")}  # the encoding of WSGI
        (body,) = handler(environ, lambda *_status_and_headers: None)

        links = json.loads(body)["_links"]
        assert links["documentation"]["href"] == f"http://testserver{quote(script_name)}/docs/reference/#list-payments"
        assert links["self"]["href"].startswith(f"http://testserver{quote(script_name)}/v2/payments")
