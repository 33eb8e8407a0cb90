"""ETag and If-None-Match (RFC 9110, 13)."""

import pytest

from payments.models import Organization, Payment
from tests.api import Api
from tests.factories import PaymentFactory


@pytest.fixture
def payment(organization: Organization) -> Payment:
    return PaymentFactory.create(id="pt_1", organization=organization)


PATHS = ["/v2/payments", "/v2/payments/pt_1"]


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_says_who_may_keep_it_and_what_it_depends_on(api: Api, payment: Payment, path: str) -> None:
    response = api.get(path)

    assert response["Cache-Control"] == "private, no-cache"
    assert response["Vary"] == "Accept, Authorization"
    assert response["ETag"].startswith('"')


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("form", ["{}", "W/{}", '"x", {}', "*"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_client_that_has_it_already_gets_a_304(api: Api, payment: Payment, path: str, form: str, method: str) -> None:
    whole = api.get(path)
    etag = whole["ETag"]

    response = api.send(method, path, If_None_Match=form.format(etag))

    assert response.status_code == 304
    assert response.content == b""
    assert "Content-Length" not in response
    assert "Allow" not in response
    assert response["ETag"] == etag
    assert response["Cache-Control"] == "private, no-cache"
    assert response["Vary"] == "Accept, Authorization"


@pytest.mark.parametrize("path", PATHS)
def test_a_change_changes_the_etag(api: Api, payment: Payment, path: str) -> None:
    etag = api.get(path)["ETag"]

    Payment.objects.filter(id="pt_1").update(description="changed")
    response = api.send("GET", path, If_None_Match=etag)

    assert response.status_code == 200
    assert response["ETag"] != etag


@pytest.mark.parametrize("tag", ["", "nonsense", '"x"', 'W/"x"'])
def test_another_etag_gets_the_answer(api: Api, payment: Payment, tag: str) -> None:
    assert api.send("GET", "/v2/payments", If_None_Match=tag).status_code == 200


def test_an_error_has_no_etag(api: Api) -> None:
    response = api.get(limit=0)

    assert "ETag" not in response
