"""Canaries in every part of a request: a key, a card number, an e-mail address. None is found again anywhere."""

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

CANARY = "canary-finch"
EMAIL = "canary.baker@canary.example"
HEADERS = ("Accept", "Host", "Cookie", "If-None-Match", "User-Agent", "Referer", "Authorization", "X-Request-ID")
CARDS = ("5555555555554444", "5555 5555 5555 4444", "5555-5555-5555-4444")


class Aviary(NamedTuple):
    """A service, its log, and the key that is nobody's business."""

    service: Service
    log: Path
    key: str


@pytest.fixture(scope="module")
def aviary(service: Service) -> Aviary:
    service.create_organization(7001, name="Canaries")
    assert service.log is not None
    return Aviary(service, service.log, service.create_api_key(organization=7001, mode="live"))


def ask(service: Service, method: str, target: str, headers: dict[str, str]) -> str:
    """Send a request and return the whole answer, as a text."""
    with closing(http.client.HTTPConnection("127.0.0.1", service.port)) as connection:
        connection.request(method, target, headers=headers)
        response = connection.getresponse()
        return f"{response.getheaders()}{response.read().decode()}"


def stored(service: Service) -> str:
    """Return all that the database holds, its log of changes included."""
    if path := service.database_url.removeprefix("sqlite:///").removeprefix(service.database_url):
        return "".join(file.read_bytes().decode("latin-1") for file in Path(path).parent.glob(f"{Path(path).name}*"))
    with psycopg.connect(service.database_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        parts = []
        for (table,) in tables:
            with connection.cursor().copy(f'COPY "{table}" TO STDOUT') as copy:
                parts += [bytes(block).decode() for block in copy]
        return "".join(parts)


def requests(canary: str, good: dict[str, str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield method, target and headers, the canary in each part once."""
    text = quote(canary)
    for target in (f"?limit={text}", f"?from={text}", f"?{text}=1", f"?limit=1&{text}", f"/{text}"):
        yield "GET", f"/v2/payments{target}", good
    for path in (f"/v2/{text}", f"/nothing/{text}"):
        yield "GET", path, good
    for name in HEADERS:
        yield "GET", "/v2/payments", good | {name: f"x {canary}"}
    yield "POST", "/v2/payments", {"Authorization": f"Bearer {canary}"}
    yield "GET", "/v2/payments", {"Authorization": f"Basic {canary}"}


def test_nothing_that_a_request_brings_is_found_again(aviary: Aviary) -> None:
    service, log, key = aviary
    good = {"Authorization": f"Bearer {key}"}
    bad_key = key[:-1] + ("a" if key[-1] != "a" else "b")
    canaries = (key, bad_key, EMAIL, *CARDS)
    written_before = len(log.read_text())

    answers = [ask(service, *request) for canary in canaries for request in requests(canary, good)]

    lines = log.read_text()[written_before:]
    found = "".join(answers) + lines + stored(service)
    assert len(lines.splitlines()) >= len(answers), "every request is a line"
    assert [canary for canary in canaries if canary in found] == []


@pytest.mark.parametrize(
    "path", ["/v2/payments", "/v2/x", "/nothing", "/admin/", "/admin/login/", "/docs/", "/healthz"]
)
def test_a_header_that_has_no_form_by_which_it_could_be_taken_out_is_found_nowhere_either(
    aviary: Aviary, path: str
) -> None:
    service, log, _ = aviary
    written_before = len(log.read_text())

    answers = [ask(service, "GET", path, {name: f"{CANARY} {CANARY}"}) for name in HEADERS]
    answers += [ask(service, "GET", path, {"Host": CANARY})]

    lines = log.read_text()[written_before:]
    assert len(lines.splitlines()) >= len(answers), "every request is a line"
    assert CANARY not in "".join(answers) + lines


def test_an_outage_under_load_tells_no_key(aviary: Aviary) -> None:
    """The database's own words go into the log."""
    service, log, key = aviary
    if service.database_url.startswith("sqlite"):
        with closing(sqlite3.connect(service.database_url.removeprefix("sqlite:///"), isolation_level=None)) as other:
            other.execute("ALTER TABLE payments_apikey RENAME TO apikey")
            answer = ask(service, "GET", "/v2/payments", {"Authorization": f"Bearer {key}"})
            other.execute("ALTER TABLE apikey RENAME TO payments_apikey")
    else:
        with psycopg.connect(service.database_url, autocommit=True) as postgresql:
            postgresql.execute("ALTER TABLE payments_apikey RENAME TO apikey")
            answer = ask(service, "GET", "/v2/payments", {"Authorization": f"Bearer {key}"})
            postgresql.execute("ALTER TABLE apikey RENAME TO payments_apikey")

    assert '"status":503' in answer
    assert "payments_apikey" in log.read_text()
    assert key not in answer + log.read_text()
