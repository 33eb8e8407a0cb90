"""The rate limit of a key. Invalid keys count for nothing: they have too many random bits to be guessed."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from payments.models import Organization
from payments.runtime.rate_limits import RateLimit
from tests.support.api import Api
from tests.support.factories import ApiKeyFactory
from tests.support.problem import assert_problem, problem

pytestmark = pytest.mark.once

TOO_MANY = problem(429, "Too Many Requests", "Too many requests. Wait for the number of seconds in Retry-After.")
NOW = 1_800_000_000.0


@pytest.fixture(autouse=True)
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock, so that the tests do not depend on the speed of the machine."""
    monkeypatch.setattr("time.time", lambda: NOW)


@pytest.fixture
def limited(settings: Settings) -> None:
    settings.PAYMENTS_RATE_LIMIT = RateLimit(2, seconds=60)


def rate_limit_headers(response: Any) -> tuple[str | None, str | None]:
    return response.get("RateLimit-Policy"), response.get("RateLimit")


def test_default_has_no_limit_and_no_headers(api: Api) -> None:
    responses = [api.get() for _ in range(5)]

    assert {response.status_code for response in responses} == {200}
    assert {rate_limit_headers(response) for response in responses} == {(None, None)}


def test_key_gets_its_limit_in_headers_and_then_429(api: Api, limited: None) -> None:
    responses = [api.get() for _ in range(3)]

    assert [response.status_code for response in responses] == [200, 200, 429]
    assert [rate_limit_headers(response) for response in responses] == [
        ('"key";q=2;w=60', '"key";r=1;t=60'),
        ('"key";q=2;w=60', '"key";r=0;t=60'),
        ('"key";q=2;w=60', '"key";r=0;t=60'),
    ]
    assert_problem(responses[-1], TOO_MANY)
    assert responses[-1]["Retry-After"] == "60"


def test_304_has_the_rate_limit_headers(api: Api, limited: None) -> None:
    etag = api.get()["ETag"]

    response = api.send("GET", "/v2/payments", If_None_Match=etag)

    assert response.status_code == 304
    assert rate_limit_headers(response) == ('"key";q=2;w=60', '"key";r=0;t=60')


def test_errors_count_and_options_without_a_key_does_not(api: Api, client: Client, limited: None) -> None:
    statuses = [client.options("/v2/payments").status_code for _ in range(3)]
    statuses += [api.get(limit=0).status_code, api.send("POST", "/v2/payments").status_code, api.get().status_code]

    assert statuses == [200, 200, 200, 400, 405, 429]


def test_unauthenticated_token_of_the_project_is_no_key(client: Client, settings: Settings, limited: None) -> None:
    settings.REST_FRAMEWORK = {"UNAUTHENTICATED_TOKEN": "builtins.object"}

    response = client.options("/v2/payments")

    assert (response.status_code, rate_limit_headers(response)) == (200, (None, None))


def test_keys_have_separate_limits(api: Api, client: Client, organization: Organization, limited: None) -> None:
    other_api = Api(client, ApiKeyFactory.create(organization=organization))
    for _ in range(3):
        api.get()

    assert other_api.get().status_code == 200


def test_limit_costs_no_query(api: Api, settings: Settings) -> None:
    numbers = []
    for limit in (None, RateLimit(2, seconds=60)):
        settings.PAYMENTS_RATE_LIMIT = limit
        with CaptureQueriesContext(connection) as queries:
            api.get()
        numbers.append(len(queries))

    assert numbers[0] == numbers[1] > 0
