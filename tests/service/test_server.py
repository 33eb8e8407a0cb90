"""Slow clients do not block the server, and no response is lost when a worker ends."""

import http.client
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.load import Load
from tests.support.migrated import fresh_database
from tests.support.scale import IS_LONG, report, times
from tests.support.service import Service, count_started_workers, workers
from tests.support.waiting import SECONDS_MAX, wait_until

pytestmark = [pytest.mark.once, pytest.mark.processes]

CLIENTS = 4
SLOW_CLIENTS = times(50, long=500)
REQUESTS = times(1_000, long=200_000)
RESTARTS = 20
IN_FLIGHT = 40
CONNECTIONS_MAX = 8192  # of each worker
HELD_SECONDS = 30
WORKERS = 2
RESTART_SECONDS_MAX = 5
BYTES_PER_MB = 2**20
GROWTH_MB_MAX = 3

SCRIPT = b"/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("served")
    with fresh_database(directory) as url, Service(url, workers=WORKERS, log=directory / "log").serving() as service:
        service.create_demo_payments(500)
        yield service


@pytest.fixture(scope="module")
def key(served: Service) -> str:
    return served.create_api_key(organization=1001, mode="live")


def request(method: bytes, path: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([method + b" " + path + b" HTTP/1.1", b"Host: 127.0.0.1", *headers]) + b"\r\n"


def no_bytes(_service: Service, _key: str) -> bytes:
    return b""


def another_protocol(_service: Service, _key: str) -> bytes:
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def incomplete_headers(_service: Service, key: str) -> bytes:
    return request(b"GET", b"/v2/payments", b"Authorization: Bearer " + key.encode())


def incomplete_body(_service: Service, key: str) -> bytes:
    return request(
        b"POST", b"/v2/payments", b"Authorization: Bearer " + key.encode(), b"Content-Length: 1000", b"", b"x"
    )


def unread_pages(_service: Service, key: str) -> bytes:
    return request(b"GET", b"/v2/payments?limit=250", b"Authorization: Bearer " + key.encode(), b"") * 10


def unread_scripts(_service: Service, _key: str) -> bytes:
    return request(b"GET", SCRIPT, b"") * 3


@pytest.mark.parametrize(
    "sent", [no_bytes, another_protocol, incomplete_headers, incomplete_body, unread_pages, unread_scripts]
)
def test_slow_clients_do_not_block_others(served: Service, key: str, sent: Callable[[Service, str], bytes]) -> None:
    content = sent(served, key)
    with ExitStack() as stack, Load(served.port, key).running(CLIENTS) as load:
        for _ in range(SLOW_CLIENTS):
            slow = stack.enter_context(socket.socket())
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            slow.connect(("127.0.0.1", served.port))
            slow.sendall(content)
        held_at = time.monotonic()
        load.wait_for_all(200, after=held_at, count=times(20, long=2_000))

    assert {response.status for response in load.responses} == {200}
    load.report(f"{SLOW_CLIENTS} sockets, {sent.__name__}")


@pytest.mark.long
def test_connections_beyond_the_limit_wait_until_silent_ones_time_out(served: Service, key: str) -> None:
    """The server closes a silent connection after ten seconds. Until then others wait, and then all are served."""
    connections = WORKERS * CONNECTIONS_MAX * 11 // 10
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with ExitStack() as stack:
        for number in range(connections):
            silent = stack.enter_context(socket.socket())
            silent.setblocking(False)
            silent.bind((f"127.0.1.{number % 8 + 1}", 0))
            silent.connect_ex(("127.0.0.1", served.port))
        with Load(served.port, key, source="127.0.0.2").running(CLIENTS) as load:
            time.sleep(HELD_SECONDS)

    assert {response.status for response in load.responses} == {200}
    load.report(f"{connections} silent sockets")


def test_killed_worker_is_replaced(served: Service, key: str) -> None:
    before = workers(served)
    assert len(before) == WORKERS

    before[0].kill()
    killed_at = time.monotonic()
    with Load(served.port, key).running(CLIENTS) as load:
        load.wait_for(200, after=killed_at)
        restart_ends_at = killed_at + (RESTART_SECONDS_MAX if IS_LONG else SECONDS_MAX)
        wait_until(lambda: set(workers(served)) - set(before), seconds_max=restart_ends_at - time.monotonic())
        replaced_at = time.monotonic()
        load.assert_recovered(repaired_at=replaced_at)

    assert {response.status for response in load.responses} <= {200, 0}
    report(f"a killed worker was replaced after {replaced_at - killed_at:.1f} s")


@pytest.mark.long
def test_rolling_restart_fails_no_request(served: Service, key: str) -> None:
    """SIGHUP replaces the workers in turn. It may end a persistent connection between two requests."""
    load = Load(served.port, key)
    statuses = []
    for _ in range(RESTARTS):
        before = set(workers(served))
        served.server.send_signal(signal.SIGHUP)
        started = count_started_workers(served) + WORKERS
        while before & set(workers(served)) or count_started_workers(served) < started:
            statuses.append(load.get().status)
    failed = [status for status in statuses if status != 200]
    report(f"{RESTARTS} rolling restarts: {len(statuses)} new connections, {len(failed)} failed")

    assert failed == []


def test_stopping_server_completes_the_requests_in_flight(tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url:
        service = Service(url, workers=WORKERS, log=tmp_path / "log")
        with service.serving():
            service.create_demo_payments(500)
            load = Load(service.port, service.create_api_key(organization=1001, mode="live"), "/v2/payments?limit=250")
            with load.running(CLIENTS):
                wait_until(lambda: count_started_workers(service) >= WORKERS)
                load.wait_for(200, after=time.monotonic())
                in_flight = [send_request(service, load.key) for _ in range(IN_FLIGHT)]
                wait_until_accepted(service, {connection.sock.getsockname() for connection in in_flight})
                service.server.terminate()
                statuses = [read_status(connection) for connection in in_flight]
                load.stopped.set()
            exit_status = service.server.wait(timeout=SECONDS_MAX)

    assert statuses == [200] * IN_FLIGHT
    assert exit_status == 0


def wait_until_accepted(service: Service, clients: set[tuple[str, int]]) -> None:
    """Wait until the workers have accepted the connections of all these client addresses."""

    def accepted() -> set[tuple[str, int]]:
        connections = [connection for worker in workers(service) for connection in worker.net_connections("tcp")]
        return {tuple(connection.raddr) for connection in connections if connection.raddr}

    wait_until(lambda: clients <= accepted(), explain=lambda: clients - accepted())


def send_request(service: Service, key: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    connection.request("GET", "/v2/payments?limit=250", headers={"Authorization": f"Bearer {key}"})
    return connection


def read_status(connection: http.client.HTTPConnection) -> int:
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def test_memory_does_not_grow(served: Service, key: str) -> None:
    with Load(served.port, key, pause_seconds=0).running(CLIENTS) as load:
        wait_until(lambda: len(load.responses) >= REQUESTS // 2, seconds_max=600)
        before = max(worker.memory_info().rss for worker in workers(served))
        wait_until(lambda: len(load.responses) >= REQUESTS, seconds_max=600)
        after = max(worker.memory_info().rss for worker in workers(served))

    assert (after - before) / BYTES_PER_MB < GROWTH_MB_MAX
    megabytes = f"{before / BYTES_PER_MB:.1f} MB half way, {after / BYTES_PER_MB:.1f} at the end"
    report(f"{len(load.responses)} requests: {megabytes}")


@pytest.mark.parametrize("path", ["/v2/payments", "/docs/", "/admin/login/", "/healthz", "/nothing"])
def test_no_response_names_a_version(served: Service, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()

    names = " ".join(response.getheader(name) or "" for name in ("Server", "X-Powered-By", "Via"))
    assert not any(character.isdigit() for character in names)
