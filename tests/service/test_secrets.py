"""Secrets in any part of a request appear in no response, log line or table: keys, card numbers, e-mail addresses."""

import http.client
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psycopg
import pytest

from tests.support.service import Service

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("service")]

CANARY = "canary-finch"
EMAIL = "canary.baker@canary.example"
HEADERS = ("Accept", "Host", "Cookie", "If-None-Match", "User-Agent", "Referer", "Authorization", "X-Request-ID")
CARDS = ("5555555555554444", "5555 5555 5555 4444", "5555-5555-5555-4444")


class Observed(NamedTuple):
    """A service, its log, and the key that must stay secret."""

    service: Service
    log: Path
    key: str


@pytest.fixture(scope="module")
def observed(service: Service) -> Observed:
    service.create_organization(7001, name="Canaries")
    assert service.log is not None
    return Observed(service, service.log, service.create_api_key(organization=7001, mode="live"))


def fetch(service: Service, method: str, target: str, headers: dict[str, str]) -> str:
    """Return the complete response to a request, as text."""
    with closing(http.client.HTTPConnection("127.0.0.1", service.port)) as connection:
        connection.request(method, target, headers=headers)
        response = connection.getresponse()
        return f"{response.getheaders()}{response.read().decode()}"


def stored(service: Service) -> str:
    """Return the content of the database, including SQLite's write-ahead log."""
    if path := service.database_url.removeprefix("sqlite:///").removeprefix(service.database_url):
        return "".join(file.read_bytes().decode("latin-1") for file in Path(path).parent.glob(f"{Path(path).name}*"))
    with psycopg.connect(service.database_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        parts = []
        for (table,) in tables:
            with connection.cursor().copy(f'COPY "{table}" TO STDOUT') as copy:
                parts += [bytes(block).decode() for block in copy]
        return "".join(parts)


def requests(canary: str, valid: dict[str, str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield methods, targets and headers, with the canary in one part at a time."""
    text = quote(canary)
    for target in (f"?limit={text}", f"?from={text}", f"?{text}=1", f"?limit=1&{text}", f"/{text}"):
        yield "GET", f"/v2/payments{target}", valid
    for path in (f"/v2/{text}", f"/nothing/{text}"):
        yield "GET", path, valid
    for name in HEADERS:
        yield "GET", "/v2/payments", valid | {name: f"x {canary}"}
    yield "POST", "/v2/payments", {"Authorization": f"Bearer {canary}"}
    yield "GET", "/v2/payments", {"Authorization": f"Basic {canary}"}


def test_secrets_of_requests_appear_nowhere(observed: Observed) -> None:
    service, log, key = observed
    valid = {"Authorization": f"Bearer {key}"}
    invalid_key = key[:-1] + ("a" if key[-1] != "a" else "b")
    canaries = (key, invalid_key, EMAIL, *CARDS)
    written_before = len(log.read_text())

    responses = [fetch(service, *request) for canary in canaries for request in requests(canary, valid)]

    lines = log.read_text()[written_before:]
    output = "".join(responses) + lines + stored(service)
    assert len(lines.splitlines()) >= len(responses), "every request is logged"
    assert [canary for canary in canaries if canary in output] == []


@pytest.mark.parametrize(
    "path", ["/v2/payments", "/v2/x", "/nothing", "/admin/", "/admin/login/", "/docs/", "/healthz"]
)
def test_headers_appear_nowhere(observed: Observed, path: str) -> None:
    service, log, _ = observed
    written_before = len(log.read_text())

    responses = [fetch(service, "GET", path, {name: f"{CANARY} {CANARY}"}) for name in HEADERS]
    responses += [fetch(service, "GET", path, {"Host": CANARY})]

    lines = log.read_text()[written_before:]
    assert len(lines.splitlines()) >= len(responses), "every request is logged"
    assert CANARY not in "".join(responses) + lines.replace(f"to the host {CANARY}.", "")  # operators may allow it


def test_outage_reveals_no_key(observed: Observed) -> None:
    """The message of the database is logged."""
    service, log, key = observed
    if service.database_url.startswith("sqlite"):
        with closing(sqlite3.connect(service.database_url.removeprefix("sqlite:///"), isolation_level=None)) as other:
            other.execute("ALTER TABLE payments_apikey RENAME TO apikey")
            response = fetch(service, "GET", "/v2/payments", {"Authorization": f"Bearer {key}"})
            other.execute("ALTER TABLE apikey RENAME TO payments_apikey")
    else:
        with psycopg.connect(service.database_url, autocommit=True) as postgresql:
            postgresql.execute("ALTER TABLE payments_apikey RENAME TO apikey")
            response = fetch(service, "GET", "/v2/payments", {"Authorization": f"Bearer {key}"})
            postgresql.execute("ALTER TABLE apikey RENAME TO payments_apikey")

    assert '"status":503' in response
    assert "payments_apikey" in log.read_text()
    assert key not in response + log.read_text()
