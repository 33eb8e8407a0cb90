"""Faults of PostgreSQL: every request gets a response in time, and the service recovers with the server."""

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from tests.support.list_errors import assert_timeout_names_created_at, slow_payments
from tests.support.load import STEADY_RESPONSES, Load
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.scale import times
from tests.support.service import USUAL_LIMITS, Service, Walker
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.processes]

USER = NAME = "payments"
CLIENTS = 8
WORKERS = 2
RESTARTS = times(3, long=20)

# The longest response time while the server refuses connections, and while it does not respond.
REFUSED_SECONDS_MAX = 1
UNRESPONSIVE_SECONDS_MAX = 3


class Proxy:
    """A TCP proxy in front of a server. It can stop forwarding at once, or at a packet with a certain content."""

    def __init__(self, port: int) -> None:
        self.server_port = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.is_forwarding = threading.Event()
        self.is_forwarding.set()
        self.stop_at: bytes | None = None
        self.open: set[socket.socket] = set()  # the connections of clients and to the server
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.is_forwarding.wait()
                try:
                    server = socket.create_connection(("127.0.0.1", self.server_port))
                except ConnectionRefusedError:
                    client.close()
                    continue
                # Forward at once: a statement in two packets must not wait for an acknowledgement.
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.open |= {client, server}
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self.forward, args=[source, target], daemon=True).start()

    def forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self.stop_at is not None and self.stop_at in data:
                    self.is_forwarding.clear()
                self.is_forwarding.wait()
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
            self.open.discard(end)


class Faulty(NamedTuple):
    """A service, a server that a test can break, and the proxy between them."""

    service: Service
    server: BreakablePostgresql
    proxy: Proxy
    key: str
    log: Path

    def load(self) -> Load:
        return Load(self.service.port, self.key)

    def administer(self) -> psycopg.Connection[tuple[object, ...]]:
        """Connect as superuser, without the proxy."""
        return psycopg.connect(self.server.url, dbname=NAME, autocommit=True)

    def clear_last_uses(self) -> None:
        """Make the next request write the last use of its key."""
        with self.administer() as other:
            other.execute("UPDATE payments_apikey SET last_used_at = NULL")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    log = tmp_path_factory.mktemp("log") / "log"
    with breakable_postgresql() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {USER} LOGIN")
            connection.execute(f"CREATE DATABASE {NAME} OWNER {USER}")
        proxy = Proxy(server.port)
        # Two addresses of the same server: a client tries the second one if the first one fails.
        addresses = ",".join([f"127.0.0.1:{proxy.port}"] * 2)
        service = Service(f"postgresql://{USER}@{addresses}/{NAME}", settings=USUAL_LIMITS, workers=WORKERS, log=log)
        service.migrate()
        with service.serving():
            service.create_demo_payments(500)
            yield Faulty(service, server, proxy, service.create_api_key(organization=1001, mode="live"), log)


@pytest.fixture(autouse=True)
def healthy(faulty: Faulty) -> None:
    """Wait until all requests are served, as before the test of a fault."""
    with faulty.load().running(CLIENTS) as load:
        load.wait_for_all(200, after=time.monotonic(), count=10)


@pytest.mark.extended
@pytest.mark.parametrize("stop", [BreakablePostgresql.stop_immediately, BreakablePostgresql.kill])
def test_service_recovers_when_the_server_is_started_again(
    faulty: Faulty, stop: Callable[[BreakablePostgresql], None]
) -> None:
    with faulty.load().running(CLIENTS) as load:
        for _ in range(-(-RESTARTS // 2)):
            load.wait_for(200, after=time.monotonic())
            stop(faulty.server)
            load.wait_for(503, after=time.monotonic())
            faulty.server.start()
            load.assert_recovered(repaired_at=time.monotonic())

    load.assert_expected(seconds_max=REFUSED_SECONDS_MAX)
    load.report(stop.__name__)


@pytest.mark.extended
def test_restart_between_requests_fails_no_request(faulty: Faulty) -> None:
    with faulty.load().running(CLIENTS) as load:
        load.wait_for(200, after=time.monotonic())
    faulty.server.stop_immediately()
    faulty.server.start()

    responses = [faulty.load().get() for _ in range(CLIENTS)]

    assert {response.status for response in responses} == {200}


def assert_alive(faulty: Faulty, *, count: int) -> None:
    """Send health checks. A worker responds to them after the requests that came before."""
    probes = Load(faulty.service.port, faulty.key, path="/healthz")
    for _ in range(count):
        probes.responses.append(probes.get())
        time.sleep(0.1)
    assert {response.status for response in probes.responses} == {200}
    probes.assert_in_time(seconds_max=UNRESPONSIVE_SECONDS_MAX)


@contextmanager
def frozen(faulty: Faulty) -> Iterator[None]:
    with faulty.server.frozen():
        yield


@contextmanager
def black_holed(faulty: Faulty) -> Iterator[None]:
    faulty.proxy.is_forwarding.clear()
    try:
        yield
    finally:
        faulty.proxy.is_forwarding.set()


@pytest.mark.parametrize("fault", [frozen, black_holed])
def test_requests_to_an_unresponsive_server_get_a_response_in_time(
    faulty: Faulty, fault: Callable[[Faulty], AbstractContextManager[None]]
) -> None:
    with faulty.load().running(CLIENTS) as load:
        for _ in range(times(1, long=5)):
            load.wait_for(200, after=time.monotonic())
            with fault(faulty):
                broken_at = time.monotonic()
                assert_alive(faulty, count=times(3, long=50))
                load.wait_for_all(503, after=broken_at)
            load.assert_recovered(repaired_at=time.monotonic())

    load.assert_expected(seconds_max=UNRESPONSIVE_SECONDS_MAX)
    assert 503 in {response.status for response in load.responses}
    load.report(fault.__name__)


@pytest.mark.extended
def test_service_without_deadlines_waits_for_an_unresponsive_server(faulty: Faulty) -> None:
    unguarded = faulty.service.unguarded()
    with unguarded.serving():
        loads = [faulty.load(), Load(unguarded.port, faulty.key)]
        for load in loads:
            load.get_until(lambda response: response.status == 200)
        with ThreadPoolExecutor() as pool, frozen(faulty):
            response, late_response = (pool.submit(load.get) for load in loads)
            assert response.result().status == 503
            assert not late_response.done()

        assert late_response.result().status == 200


@pytest.mark.extended
def test_lost_packet_of_the_last_use_delays_a_request_no_longer(faulty: Faulty) -> None:
    load = faulty.load()
    faulty.clear_last_uses()
    faulty.proxy.stop_at = b'UPDATE "payments_apikey"'
    try:
        until_lost = load.get_until(lambda _response: not faulty.proxy.is_forwarding.is_set())
        afterwards = load.get()
    finally:
        faulty.proxy.stop_at = None
        faulty.proxy.is_forwarding.set()

    assert all(response.is_expected for response in [*until_lost, afterwards])
    with load.running(1):
        load.assert_recovered(repaired_at=time.monotonic())


@pytest.mark.extended
def test_slow_write_of_the_last_use_is_given_up(faulty: Faulty) -> None:
    new_key = faulty.service.create_api_key(organization=1001, mode="live")  # after a failed write, others pause
    load = Load(faulty.service.port, new_key)
    length_before = len(faulty.log.read_text())
    with faulty.administer() as other:
        other.execute(
            "CREATE FUNCTION delay_update() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep(10); RETURN NEW; END $$"
        )
        other.execute(
            "CREATE TRIGGER delay_update BEFORE UPDATE ON payments_apikey FOR EACH ROW EXECUTE FUNCTION delay_update()"
        )
        try:
            responses = [load.get() for _ in range(CLIENTS)]
        finally:
            other.execute("DROP FUNCTION delay_update CASCADE")
        ((last_use,),) = other.execute("SELECT last_used_at FROM payments_apikey ORDER BY id DESC LIMIT 1").fetchall()

    assert {response.status for response in responses} == {200}
    assert last_use is None
    assert re.search("The last use of API key .* was not written: ", faulty.log.read_text()[length_before:])


@contextmanager
def locked(faulty: Faulty) -> Iterator[None]:
    with faulty.administer() as other, other.transaction():
        other.execute("LOCK TABLE payments_payment IN ACCESS EXCLUSIVE MODE")
        yield


@contextmanager
def slow(faulty: Faulty) -> Iterator[None]:
    with faulty.administer() as other, slow_payments(other, user=USER):
        yield


@contextmanager
def without_tables(faulty: Faulty) -> Iterator[None]:
    with faulty.administer() as other:
        other.execute("ALTER TABLE payments_payment RENAME TO payments")
        try:
            yield
        finally:
            other.execute("ALTER TABLE payments RENAME TO payments_payment")


@contextmanager
def out_of_connections(faulty: Faulty) -> Iterator[None]:
    with faulty.administer() as other:
        other.execute(f"ALTER ROLE {USER} CONNECTION LIMIT 0")
        end_sessions(faulty, other)
        try:
            yield
        finally:
            other.execute(f"ALTER ROLE {USER} CONNECTION LIMIT -1")


def end_sessions(faulty: Faulty, connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """End the sessions of the service, and wait until it can notice."""
    before = set(faulty.proxy.open)
    connection.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s", [USER])
    wait_until(lambda: before.isdisjoint(faulty.proxy.open))


@pytest.mark.extended
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (locked, "canceling statement due to lock timeout"),
        (slow, "canceling statement due to statement timeout"),
        (without_tables, "does not exist"),
        (out_of_connections, "too many connections for role"),
    ],
)
def test_outage_makes_the_service_unavailable_and_is_logged(
    faulty: Faulty, fault: Callable[[Faulty], AbstractContextManager[None]], message: str
) -> None:
    length_before = len(faulty.log.read_text())
    with faulty.load().running(CLIENTS) as load:
        load.wait_for(200, after=time.monotonic())
        with fault(faulty):
            load.wait_for_all(503, after=time.monotonic())
        load.assert_recovered(repaired_at=time.monotonic())

    load.assert_expected(seconds_max=UNRESPONSIVE_SECONDS_MAX)
    assert message in faulty.log.read_text()[length_before:]
    load.report(fault.__name__)


@pytest.mark.extended
def test_slow_filters_name_the_parameter_to_narrow_and_block_no_other_request(faulty: Faulty) -> None:
    # A busy machine needs more than half a second from the server's limit to the request's.
    service = Service(faulty.service.database_url, settings={"REQUEST_SECONDS_MAX": "5"}, log=faulty.log)
    with service.serving(), slow(faulty):
        assert_timeout_names_created_at(service.base_url, faulty.key)


@pytest.mark.extended
def test_read_only_server_serves_pages(faulty: Faulty) -> None:
    """Like a replica. The last use of the key cannot be written, but no request fails."""
    faulty.clear_last_uses()
    with faulty.administer() as other:
        other.execute(f"ALTER ROLE {USER} SET default_transaction_read_only = on")
        end_sessions(faulty, other)
        try:
            with faulty.load().running(CLIENTS) as load:
                load.wait_for_all(200, after=0, count=STEADY_RESPONSES)
        finally:
            other.execute(f"ALTER ROLE {USER} RESET default_transaction_read_only")
            end_sessions(faulty, other)

    assert {response.status for response in load.responses} == {200}


def test_log_line_of_an_outage_names_the_database(faulty: Faulty) -> None:
    length_before = len(faulty.log.read_text())
    with without_tables(faulty):
        faulty.load().get()

    logged = faulty.log.read_text()[length_before:]
    assert '"message": "The database payments failed: relation \\"payments_payment\\" does not exist' in logged


@pytest.mark.extended
def test_outage_writes_one_line_a_second_and_worker_for_each_kind_of_failure(faulty: Faulty) -> None:
    length_before = len(faulty.log.read_text())
    with faulty.load().running(CLIENTS) as load, Walker(faulty.service.base_url, faulty.key) as walker:
        faulty.server.stop_immediately()
        load.wait_for_all(503, after=time.monotonic(), count=100)
        for path in ("/v2/payments/changes", "/readyz", "/admin/") * 100:
            assert walker.send(path, Cookie=f"sessionid={'x' * 32}")[0].status == 503
        faulty.server.start()
        load.assert_recovered(repaired_at=time.monotonic())

    events = [json.loads(line) for line in faulty.log.read_text()[length_before:].splitlines()]
    failures = [event for event in events if event["level"] != "INFO" and event["logger"] != "payments.runtime"]
    assert {event["logger"] for event in failures} >= {
        "payments.api.errors", "payments.service.health", "django.request",
    }  # fmt: skip
    for _, group in groupby(sorted(failures, key=kind), key=kind):
        times = [datetime.fromisoformat(event["time"]) for event in group]
        assert len(times) <= WORKERS * (1 + (times[-1] - times[0]).total_seconds())
    more = sum(int(number) for event in failures for number in re.findall(r"\((\d+) more since", event["message"]))
    assert more > 10 * len(failures)


def kind(event: dict[str, str]) -> tuple[str, str]:
    return event["logger"], re.sub(r" \(\d+ more since.*", "", event["message"])
