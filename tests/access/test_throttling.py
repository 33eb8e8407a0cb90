"""The rate limit of a key, and the limit of invalid keys per IP address, which never blocks a valid key."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from payments.models import ApiKey, Organization
from payments.runtime.rate_limits import RateLimit
from tests.support.api import Api, key_text
from tests.support.factories import ApiKeyFactory
from tests.support.problem import assert_problem, problem

TOO_MANY = problem(429, "Too Many Requests", "Too many requests. Wait for the number of seconds in Retry-After.")
NOW = 1_800_000_000.0
NEVER_ISSUED = "live_0000000000000000000000000000000000itDM"


@pytest.fixture(autouse=True)
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock, so that the tests do not depend on the speed of the machine."""
    monkeypatch.setattr("time.time", lambda: NOW)


@pytest.fixture
def limited(settings: Settings) -> None:
    settings.RATE_LIMIT = RateLimit(2, seconds=60)


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


def test_keys_have_separate_limits(api: Api, client: Client, organization: Organization, limited: None) -> None:
    other_api = Api(client, ApiKeyFactory.create(organization=organization))
    for _ in range(3):
        api.get()

    assert other_api.get().status_code == 200


def test_limit_costs_no_query(api: Api, limited: None) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get()

    assert len(queries) == 2


def send_key(client: Client, text: str, address: str = "192.0.2.1", **environ: Any) -> Any:
    """Return the response to a request with this key from this address."""
    return client.get("/v2/payments", headers={"Authorization": f"Bearer {text}"}, REMOTE_ADDR=address, **environ)


@pytest.fixture
def three_invalid_keys(settings: Settings) -> None:
    settings.BAD_KEY_LIMIT = RateLimit(3, seconds=60)


@pytest.mark.parametrize("text", ["nonsense", NEVER_ISSUED])
def test_too_many_invalid_keys_of_one_address_get_429(
    client: Client, db: None, three_invalid_keys: None, text: str
) -> None:
    responses = [send_key(client, text) for _ in range(5)]

    assert [response.status_code for response in responses] == [401, 401, 401, 429, 429]
    assert_problem(responses[-1], TOO_MANY)
    assert responses[-1]["Retry-After"] == "60"
    assert send_key(client, text, "192.0.2.2").status_code == 401


def test_valid_key_of_the_same_address_is_not_blocked(client: Client, key: ApiKey, three_invalid_keys: None) -> None:
    for _ in range(10):
        send_key(client, "nonsense")

    assert send_key(client, key_text(key)).status_code == 200


def test_ipv6_addresses_of_one_network_are_counted_together(client: Client, db: None, three_invalid_keys: None) -> None:
    statuses = [send_key(client, "nonsense", f"2001:db8::{number}").status_code for number in range(4)]
    other_network = send_key(client, "nonsense", "2001:db8:0:1::1").status_code

    assert (statuses, other_network) == ([401, 401, 401, 429], 401)


def test_ipv4_address_written_as_ipv6_counts_as_ipv4(client: Client, db: None, three_invalid_keys: None) -> None:
    addresses = ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1", "::ffff:192.0.2.2")

    assert [send_key(client, "nonsense", address).status_code for address in addresses] == [401, 401, 401, 429, 401]


def test_clients_without_an_address_are_counted_together(client: Client, db: None, three_invalid_keys: None) -> None:
    assert [send_key(client, "nonsense", "").status_code for _ in range(4)] == [401, 401, 401, 429]


@pytest.mark.parametrize(
    ("trusted", "forwarded", "statuses"),
    [
        (True, "198.51.100.7, 203.0.113.{}", [401, 401, 401, 401]),
        (True, "203.0.113.{}, 198.51.100.7", [401, 401, 401, 429]),
        (True, "203.0.113.{}:51234", [401, 401, 401, 401]),
        (True, "[2001:db8:{}::1]:443", [401, 401, 401, 401]),
        (True, "unknown-{}", [401, 401, 401, 429]),
        (False, "198.51.100.7, 203.0.113.{}", [401, 401, 401, 429]),
    ],
)
@pytest.mark.usefixtures("db", "three_invalid_keys")
def test_only_the_last_address_of_a_trusted_proxy_counts(
    client: Client, settings: Settings, trusted: bool, forwarded: str, statuses: list[int]
) -> None:
    settings.TRUST_PROXY = trusted

    responses = [send_key(client, "nonsense", HTTP_X_FORWARDED_FOR=forwarded.format(number)) for number in range(4)]

    assert [response.status_code for response in responses] == statuses


def test_limit_of_invalid_keys_can_be_turned_off(client: Client, db: None, settings: Settings) -> None:
    settings.BAD_KEY_LIMIT = None

    assert {send_key(client, "nonsense").status_code for _ in range(200)} == {401}
