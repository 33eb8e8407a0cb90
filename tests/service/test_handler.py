"""The short way to the API gives what Django's own way gives."""

import gc
import json
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client, RequestFactory
from django.test.utils import override_script_prefix
from pytest_django import Settings

from payments.models import Organization
from payments.service.handler import Handler
from tests.support.api import REQUEST_ID, Api
from tests.support.factories import PaymentFactory

# What a page's middleware adds to every answer, and an answer of the API has no use for.
FOR_PAGES = {"Content-Security-Policy", "Cross-Origin-Opener-Policy", "Referrer-Policy", "X-Frame-Options"}


def answer(response: Any) -> tuple[int, bytes, dict[str, str]]:
    added = FOR_PAGES | {"X-Request-ID"}
    if response.status_code == HTTPStatus.NOT_MODIFIED:
        added.add("Content-Length")  # by Django, though it is that of another answer (RFC 9110, 8.6)
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
def test_the_api_answers_as_it_does_with_all_of_djangos_middleware(
    api: Api, organization: Organization, method: str, path: str, headers: dict[str, str]
) -> None:
    PaymentFactory.create(id="pt_1", organization=organization)
    whole = Api(Client(headers={"X-Request-ID": REQUEST_ID}), api.key)

    assert answer(api.send(method, path, **headers)) == answer(whole.send(method, path, **headers))


def test_pages_have_djangos_middleware(client: Client, db: None) -> None:
    response = client.get("/admin/login/")

    assert response.headers.keys() >= FOR_PAGES
    assert "csrftoken" in response.cookies


@pytest.mark.parametrize("path", ["/admin/login/", "/docs/", "/docs/interactive/", "/nothing", "/admin/"])
def test_a_page_loads_nothing_from_elsewhere_and_is_framed_by_nobody(client: Client, db: None, path: str) -> None:
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


@pytest.mark.parametrize(("secure", "told"), [(True, "max-age=60"), (False, None)])
def test_programs_too_are_told_to_insist_on_tls(
    client: Client, db: None, settings: Settings, secure: bool, told: str | None
) -> None:
    settings.SECURE_HSTS_SECONDS = 60

    response = client.get("/v2/payments", secure=secure)

    assert response.headers.get("Strict-Transport-Security") == told


@pytest.mark.django_db(transaction=True)
def test_an_answer_leaves_nothing_for_the_garbage_collector(api: Api, organization: Organization) -> None:
    PaymentFactory.create_batch(3, organization=organization)
    answer_requests = Handler()

    def ask(query: str) -> list[bytes]:
        request = RequestFactory().get(f"/v2/payments?{query}", headers=api.authorization)
        body: list[bytes] = answer_requests(request.environ, lambda *_status_and_headers: None)
        return body

    for query, status in (("limit=2", None), ("limit=0", HTTPStatus.BAD_REQUEST)):
        ask(query)
        gc.collect()
        gc.disable()
        try:
            (body,) = ask(query)
            unreachable = gc.collect()
        finally:
            gc.enable()

        assert json.loads(body).get("status") == status
        assert unreachable == 0, query


@pytest.mark.django_db(transaction=True)
@override_script_prefix("/")  # afterwards, the prefix of the last request is forgotten
@pytest.mark.parametrize("mounted", [("/shop", ""), ("", "/shop"), ("/café", "")])
def test_links_begin_where_the_site_is_mounted_for_this_request(
    api: Api, organization: Organization, mounted: tuple[str, str]
) -> None:
    PaymentFactory.create(organization=organization)
    answer_requests = Handler()

    for script_name in mounted:
        request = RequestFactory().get("/v2/payments", headers=api.authorization)
        environ = request.environ | {"SCRIPT_NAME": script_name.encode().decode("latin-1")}  # as WSGI has it
        (body,) = answer_requests(environ, lambda *_status_and_headers: None)

        links = json.loads(body)["_links"]
        assert links["documentation"]["href"] == f"http://testserver{quote(script_name)}/docs/"
        assert links["self"]["href"].startswith(f"http://testserver{quote(script_name)}/v2/payments")
