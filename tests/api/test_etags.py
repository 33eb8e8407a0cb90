"""ETag and If-None-Match (RFC 9110, 13)."""

import cProfile
import pstats
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

import payments
from payments.api import etags
from payments.models import Organization, Payment
from tests.support.api import Api
from tests.support.factories import PaymentFactory


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
@pytest.mark.parametrize("form", ["{}", "W/{}", '"x", {}', "*"])
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


@pytest.mark.parametrize("tag", ["", "nonsense", '"x"', 'W/"x"'])
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

    rendering = {"build_record", "render", "fill"}
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


def test_etag_is_the_same_with_and_without_from(api: Api, organization: Organization) -> None:
    for name in "abc":
        PaymentFactory.create(id=f"pt_{name}", organization=organization)

    first = api.get(limit=2)

    assert api.get(limit=2, from_="pt_c")["ETag"] == first["ETag"]
    assert api.get(limit=2, from_="pt_b")["ETag"] != first["ETag"]


@pytest.mark.parametrize("path", PATHS)
def test_etag_of_another_release_gets_a_200(
    api: Api, payment: Payment, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    etag = api.get(path)["ETag"]
    monkeypatch.setattr(etags, "RELEASE", "another")

    response = api.send("GET", path, If_None_Match=etag)

    assert response.status_code == 200
    assert response["ETag"] != etag


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
