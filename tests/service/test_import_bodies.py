"""Imports over real connections: slow and hostile bodies, clients that disconnect, and several imports at a time."""

import gzip
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from payments.api.streams import BYTES_MAX, RECORDS_MAX
from payments.ingest.staging import TABLE
from payments.models import KeyScope
from tests.support.lines import line
from tests.support.migrated import fresh_database
from tests.support.service import Service
from tests.support.waiting import SECONDS_MAX, wait_until

pytestmark = [pytest.mark.processes, pytest.mark.extended]

IMPORTS = "/v2/payments/imports"
IMPORT_SECONDS_MAX = 4  # of the settings `short_imports`
BODY_PART = 2**16
SHORT = {"DJANGO_SETTINGS_MODULE": "tests.service.short_imports"}
JSON, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
NOT_ENDED = 1000  # the length of a body whose end never arrives
TOO_SLOW = "The body did not arrive in time. Send it again, or send fewer records at a time."
RUNNING = "Another import is running. Send this one again after the seconds in Retry-After."
MOST = "Send at most 10000 records and 16777216 bytes, both after decompression. Nothing was written."
INVALID = "Records are invalid, and nothing was written. Correct those in errors, and send all again."


@dataclass
class Client:
    """A connection, and the key that it uses."""

    connection: socket.socket
    key: str

    def send(self, body: bytes = b"", *, length: int | None = None, media_type: str = LINES, headers: str = "") -> None:
        size = (
            "" if "Transfer-Encoding" in headers else f"Content-Length: {len(body) if length is None else length}\r\n"
        )
        head = f"POST {IMPORTS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {media_type}\r\n{size}{headers}"
        with suppress(BrokenPipeError, ConnectionResetError):  # the server may respond before it has read the body
            self.connection.sendall(f"{head}Authorization: Bearer {self.key}\r\n\r\n".encode() + body)

    def status_of(self, path: str) -> int:
        self.connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\n\r\n".encode()
        )
        return self.receive()[0].status

    def receive(self) -> tuple[HTTPResponse, Any]:
        with closing(HTTPResponse(self.connection)) as response:
            response.begin()
            return response, json.loads(response.read() or b"null")

    def post(self, body: bytes, **options: Any) -> tuple[HTTPResponse, Any]:
        self.send(body, **options)
        return self.receive()


@contextmanager
def connected(service: Service, key: str) -> Iterator[Client]:
    with socket.create_connection(("127.0.0.1", service.port), timeout=SECONDS_MAX) as connection:
        yield Client(connection, key)


def start(stack: ExitStack, directory: Path, **settings: str) -> Service:
    url = stack.enter_context(fresh_database(directory))
    service = Service(url, settings=settings, log=directory / "log")
    service.create_organization(1)
    service.create_organization(2)
    return stack.enter_context(service.serving())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with ExitStack() as stack:
        yield start(stack, tmp_path_factory.mktemp("served"))


@pytest.fixture
def short(tmp_path: Path) -> Iterator[Service]:
    """A service whose imports end after four seconds."""
    with ExitStack() as stack:
        yield start(stack, tmp_path, **SHORT)


@pytest.fixture
def sender(served: Service) -> Iterator[Client]:
    with connected(served, import_key(served)) as client:
        yield client


def import_key(service: Service) -> str:
    return service.create_api_key(organization=1, scope=KeyScope.IMPORT)


@pytest.mark.parametrize("expects", ["", "Expect: 100-continue\r\n"])
@pytest.mark.parametrize(("scope", "status"), [(None, 401), (KeyScope.READ, 403)])
def test_key_is_refused_before_the_body_arrives(served: Service, scope: str | None, status: int, expects: str) -> None:
    key = served.create_api_key(organization=1, scope=scope) if scope else "x"
    with connected(served, key) as client:
        client.send(length=NOT_ENDED, headers=expects)
        start = client.connection.recv(16, socket.MSG_PEEK)
        _, problem = client.receive()

    assert start.startswith(f"HTTP/1.1 {status}".encode())
    assert problem["status"] == status


def test_client_with_a_key_may_wait_for_a_100(sender: Client) -> None:
    sender.send(length=2, headers="Expect: 100-continue\r\n")
    interim = sender.connection.recv(2**16)
    sender.connection.sendall(b"\n\n")

    assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert sender.receive()[0].status == 200


def test_body_in_chunks_is_imported(sender: Client, served: Service) -> None:
    parts = line(id="pt_c1") + b"\n", line(id="pt_c2")
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (*parts, b""))

    response, counts = sender.post(body, headers="Transfer-Encoding: chunked\r\n")

    assert (response.status, counts["written"]) == (200, 2)
    assert served.exported(id__startswith="pt_c").count("\n") == 2


def test_slow_body_delays_no_reader_and_gets_a_408(short: Service) -> None:
    """A server cannot end a read, so the client gets its response when it sends more."""
    with connected(short, import_key(short)) as slow, connected(short, import_key(short)) as other:
        slow.send(b"\n", length=BYTES_MAX)
        time.sleep(1)  # the service reads the body now
        refused, problem = other.post(b"")
        time.sleep(IMPORT_SECONDS_MAX)
        reads = [other.status_of("/healthz") for _ in range(10)]
        slow.connection.sendall(b"\n" * BODY_PART)
        response, late = slow.receive()
        later, _ = other.post(line())

    assert (refused.status, refused.headers["Retry-After"], problem["detail"]) == (429, "1", RUNNING)
    assert reads == [200] * 10
    assert (response.status, late["detail"]) == (408, TOO_SLOW)
    assert later.status == 200


@pytest.mark.parametrize("silent", [1, 50])
def test_silent_bodies_block_no_reader(served: Service, silent: int) -> None:
    key = import_key(served)
    with ExitStack() as stack:
        for _ in range(silent):
            stack.enter_context(connected(served, key)).send(b"\n", length=BYTES_MAX)
        reader = stack.enter_context(connected(served, served.create_api_key(organization=1)))
        statuses = [reader.status_of("/v2/payments") for _ in range(20)]

    assert statuses == [200] * 20
    with connected(served, key) as client:
        wait_until(lambda: client.post(b"")[0].status == 200)


@pytest.mark.parametrize("length", [NOT_ENDED, 100_000])
def test_client_that_disconnects_writes_nothing(served: Service, length: int) -> None:
    key = import_key(served)
    with connected(served, key) as leaving:
        leaving.send(line(id="pt_left") + b"\n", length=length)

    with connected(served, key) as client:
        wait_until(lambda: client.post(b"")[0].status == 200)  # not 429
    assert served.exported(id="pt_left") == ""


def test_client_that_does_not_wait_for_the_response_writes_all_or_nothing(served: Service) -> None:
    key = import_key(served)
    body = b"\n".join(line(id=f"pt_gone{number}") for number in range(5000))
    with connected(served, key) as leaving:
        leaving.send(body)

    with connected(served, key) as client:
        wait_until(lambda: client.post(b"")[0].status == 200)
    assert served.exported(id__startswith="pt_gone").count("\n") in {0, 5000}


def many(count: int) -> bytes:
    return b"\n".join([line()] * count)


HOSTILE = {
    "a gzip bomb": (gzip.compress(b"\n" * 2**20) * 1000, LINES, "gzip", 413, MOST),
    "gzip that ends early": (
        gzip.compress(line() * 100)[:-5],
        LINES,
        "gzip",
        400,
        "The body cannot be decompressed. Send it again.",
    ),
    "too many records": (many(RECORDS_MAX + 1), LINES, "", 413, MOST),
    "too many bytes": (b"\n" * (2**24 + 1), LINES, "", 413, MOST),
    "another organization": (line(organizationId="2"), LINES, "", 422, INVALID),
    "deep nesting": (b'{"metadata":' + b"[" * 100_000, LINES, "", 422, INVALID),
    "deeply nested arrays": (b"[" * 100_000, JSON, "", 400, "Line 1 of the body: expected a record here."),
    "a long record": (b'{"id":"' + b"x" * 2**20 + b'"}', JSON, "", 422, INVALID),
    "many columns": (b"id," * 2**20, CSV, "", 400, "Line 1 of the body: longer than 1048576 bytes."),
    "another type": (
        line(),
        "text/plain",
        "",
        415,
        "Content-Type must be application/x-ndjson, application/jsonl, application/json or text/csv, in UTF-8.",
    ),
    "another encoding": (line(), LINES, "br", 415, "Content-Encoding must be gzip, or absent."),
}


@pytest.mark.parametrize(("body", "media_type", "encoding", "status", "detail"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_body_is_refused(  # noqa: PLR0913, PLR0917  a case
    sender: Client, body: bytes, media_type: str, encoding: str, status: int, detail: str
) -> None:
    headers = f"Content-Encoding: {encoding}\r\n" if encoding else ""

    response, problem = sender.post(body, media_type=media_type, headers=headers)

    assert (response.status, response.headers["Content-Type"]) == (status, "application/problem+json")
    assert problem["detail"] == detail
    if detail != MOST:  # the server does not read a body that is too long
        assert sender.status_of("/healthz") == 200


@pytest.mark.only("postgresql")
def test_workers_import_at_the_same_time_with_different_keys_alone(served: Service) -> None:
    key = import_key(served)
    other = Service(served.database_url, log=served.log)
    with (
        other.serving(),
        connected(served, key) as first,
        connected(other, key) as same_key,
        connected(other, import_key(served)) as other_key,
        psycopg.connect(served.database_url) as database,
    ):
        database.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(sql.Identifier(TABLE)))
        first.send(line(id="pt_first"))
        wait_until(lambda: count_waiting(served) == 1)
        refused, problem = same_key.post(line(id="pt_same"))
        other_key.send(line(id="pt_other"))
        wait_until(lambda: count_waiting(served) == 2)
        database.rollback()
        statuses = [client.receive()[0].status for client in (first, other_key)]

    assert (refused.status, refused.headers["Retry-After"], problem["detail"]) == (429, "1", RUNNING)
    assert statuses == [200, 200]


def count_waiting(service: Service) -> int:
    """Return how many statements wait for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(service.database_url, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0
