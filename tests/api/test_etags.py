"""ETag and If-None-Match (RFC 9110, 13)."""

import cProfile
import pstats
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

import payments
from payments.api import etags
from payments.models import AccessState, Organization, Payment
from tests.support.api import Api
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.sql import tables_read

pytestmark = pytest.mark.also("citus")


@pytest.fixture
def payment(organization: Organization) -> Payment:
    return PaymentFactory.create(id="pt_1", organization=organization)


PATHS = ["/v2/payments", "/v2/payments/pt_1"]


@pytest.mark.parametrize("path", PATHS)
def test_response_has_caching_headers(api: Api, payment: Payment, path: str) -> None:
    response = api.get(path)

    assert response["Cache-Control"] == "private, no-cache"
    assert response["Vary"] == "Accept, Authorization"
    assert response["ETag"].startswith('"')


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("form", ["{}", "W/{}", '"x", {}', "*", " * "])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_known_etag_gets_a_304(api: Api, payment: Payment, path: str, form: str, method: str) -> None:
    etag = api.get(path)["ETag"]

    response = api.send(method, path, If_None_Match=form.format(etag))

    assert response.status_code == 304
    assert response.content == b""
    assert "Content-Length" not in response
    assert "Allow" not in response
    assert response["ETag"] == etag
    assert response["Cache-Control"] == "private, no-cache"
    assert response["Vary"] == "Accept, Authorization"


@pytest.mark.parametrize("path", PATHS)
def test_changed_payment_has_another_etag(api: Api, payment: Payment, path: str) -> None:
    etag = api.get(path)["ETag"]

    Payment.objects.filter(id="pt_1").update(description="changed")
    response = api.send("GET", path, If_None_Match=etag)

    assert response.status_code == 200
    assert response["ETag"] != etag


@pytest.mark.parametrize("tag", ["", "nonsense", '"x"', 'W/"x"', '"x*"', '"*"', '"0-0"'])
def test_unknown_etag_gets_a_200(api: Api, payment: Payment, tag: str) -> None:
    assert api.send("GET", "/v2/payments", If_None_Match=tag).status_code == 200


def test_error_has_no_etag(api: Api) -> None:
    response = api.get(limit=0)

    assert "ETag" not in response


def called_functions(send: Callable[[], Any]) -> set[str]:
    """Return the names of the functions that run for a request."""
    profile = cProfile.Profile()
    profile.runcall(send)
    return {name for _, _, name in pstats.Stats(profile).stats}  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", PATHS)
def test_304_renders_nothing(api: Api, payment: Payment, path: str) -> None:
    etag = api.get(path)["ETag"]

    called_for_200 = called_functions(lambda: api.get(path))
    called_for_304 = called_functions(lambda: api.send("GET", path, If_None_Match=etag))

    rendering = {"build_record", "render"}
    assert rendering <= called_for_200
    assert not rendering & called_for_304
    assert "conditional_response" in called_for_304


def test_pages_that_differ_only_in_their_links_have_different_etags(
    api: Api, organization: Organization, settings: Settings
) -> None:
    for name in "abc":
        PaymentFactory.create(id=f"pt_{name}", organization=organization)
    queries: list[dict[str, str]] = [
        {},
        {"limit": "3"},
        {"limit": "4"},
        {"status": "succeeded"},
        {"status": "succeeded,open"},
        {"createdAt[gte]": "2026-01-01"},
        {"sort": "desc"},
        {"sort": "asc"},
        {"limit": "2"},
        {"limit": "2", "status": "succeeded"},
    ]

    etags_here = {api.get(**query)["ETag"] for query in queries}
    settings.PUBLIC_BASE_URL = "https://pay.example"
    etags_elsewhere = {api.get(**query)["ETag"] for query in queries}

    assert len(etags_here | etags_elsewhere) == 2 * len(queries)


def test_first_page_is_unchanged_when_it_is_requested_with_from(api: Api, organization: Organization) -> None:
    for name in "abc":
        PaymentFactory.create(id=f"pt_{name}", organization=organization)

    etag = api.get(limit=2)["ETag"]
    same, other = (api.send("GET", f"/v2/payments?limit=2&from=pt_{name}", If_None_Match=etag) for name in "cb")

    assert (same.status_code, other.status_code) == (304, 200)


def state_and_content(etag: str) -> list[str]:
    """Return the two parts of an ETag."""
    parts = etag.strip('"').split("-")
    assert len(parts) == 2, etag
    return parts


TABLES = {"payments_apikey", "payments_accessstate", "payments_payment"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("form", "tables"),
    [
        ("{}", TABLES - {"payments_payment"}),
        ('"x", W/{}', TABLES - {"payments_payment"}),
        ("*", TABLES - {"payments_accessstate"}),
        ('"x*"', TABLES - {"payments_accessstate"}),
        ('"0-0"', TABLES),
    ],
)
def test_known_state_needs_no_payments(api: Api, payment: Payment, path: str, form: str, tables: set[str]) -> None:
    etag = api.get(path)["ETag"]

    with CaptureQueriesContext(connection) as queries:
        api.send("GET", path, If_None_Match=form.format(etag))

    assert set(tables_read(queries)) == tables


@pytest.mark.parametrize("path", ["/v2/payments?limit=1&from=pt_1", "/v2/payments/pt_1"])
def test_unchanged_response_gets_a_304_after_other_payments_changed(
    api: Api, payment: Payment, organization: Organization, path: str
) -> None:
    before = api.get(path)["ETag"]
    PaymentFactory.create(id="pt_0", organization=organization, created_at=NOON - timedelta(days=1))
    older = api.get(path)["ETag"]
    PaymentFactory.create(id="pt_00", organization=organization, created_at=NOON - timedelta(days=2))
    now = api.get(path)["ETag"]

    response = api.send("GET", path, If_None_Match=older)

    assert (response.status_code, response["ETag"]) == (304, older)
    assert state_and_content(before)[0] != state_and_content(older)[0] != state_and_content(now)[0]
    assert state_and_content(older)[1] == state_and_content(now)[1]


@pytest.mark.parametrize("path", PATHS)
def test_state_of_one_path_is_unknown_for_another(api: Api, payment: Payment, path: str) -> None:
    etags_of_others = [api.get(other)["ETag"] for other in [*PATHS, "/v2/payments?limit=19"] if other != path]

    response = api.send("GET", path, If_None_Match=", ".join(etags_of_others))

    state, _ = state_and_content(response["ETag"])
    assert state not in ",".join(etags_of_others)


def test_state_of_another_key_is_unknown(client: Client, api: Api, payment: Payment) -> None:
    """The revisions of two organizations could be the same: both are 0 before the first change."""
    AccessState.objects.update(revision=0)
    other = Api(client, ApiKeyFactory.create(organization=OrganizationFactory.create(id=2), mode="live"))

    response = other.send("GET", "/v2/payments", If_None_Match=api.get()["ETag"])

    assert response.status_code == 200


@pytest.mark.parametrize("path", [*PATHS, "/v2/payments/changes"])
@pytest.mark.parametrize(
    ("variables", "base"),
    [
        ({"HTTP_HOST": "pay.example"}, "http://pay.example"),
        ({"HTTP_HOST": "testserver:8443"}, "http://testserver:8443"),
        ({"wsgi.url_scheme": "https", "SERVER_PORT": "443"}, "https://testserver"),
        ({"SCRIPT_NAME": "/shop"}, "http://testserver/shop"),
    ],
)
@pytest.mark.usefixtures("payment")
def test_response_with_other_links_is_unknown(
    api: Api, settings: Settings, path: str, variables: dict[str, Any], base: str
) -> None:
    settings.ALLOWED_HOSTS = ["testserver", "pay.example"]
    etag = api.get(path)["ETag"]

    response = api.client.get(path, headers=api.authorization | {"If-None-Match": etag}, **variables)

    assert response.status_code == 200
    assert response.json()["_links"]["self"]["href"].startswith(f"{base}/v2/payments")


@pytest.mark.parametrize("path", PATHS)
def test_response_below_another_public_base_url_is_unknown(
    api: Api, payment: Payment, settings: Settings, path: str
) -> None:
    etag = api.get(path)["ETag"]
    settings.PUBLIC_BASE_URL = "https://pay.example"

    assert api.send("GET", path, If_None_Match=etag).status_code == 200


@pytest.mark.parametrize(("path", "status"), [("/v2/payments?limit=0", 400), ("/v2/payments?from=pt_1&limit=x", 400)])
def test_invalid_request_gets_no_304(api: Api, payment: Payment, path: str, status: int) -> None:
    etag = api.get()["ETag"]

    assert api.send("GET", path, If_None_Match=etag).status_code == status


@pytest.mark.parametrize("path", PATHS)
def test_another_release_compares_the_content(
    api: Api, payment: Payment, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    etag = api.get(path)["ETag"]
    monkeypatch.setattr(etags, "RELEASE", "another")

    with CaptureQueriesContext(connection) as queries:
        response = api.send("GET", path, If_None_Match=etag)

    assert "payments_payment" in tables_read(queries)
    assert (response.status_code, response["ETag"]) == (304, etag)


def test_release_is_the_digest_of_the_source() -> None:
    assert etags.digest_of_source(Path(payments.__file__).parent) == etags.RELEASE


@pytest.mark.parametrize("name", ["views.py", "ingest/validation.py"])
def test_changed_source_is_another_release(tmp_path: Path, name: str) -> None:
    module = tmp_path / name
    module.parent.mkdir(exist_ok=True)
    module.write_text("LIMIT = 20")
    before = etags.digest_of_source(tmp_path)

    module.write_text("LIMIT = 21")

    assert etags.digest_of_source(tmp_path) != before
