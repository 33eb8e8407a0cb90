"""Whatever becomes of PostgreSQL, each request has an answer in time, and all is well as soon as it is back."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from tests.support.filters import assert_told_what_to_narrow
from tests.support.load import STEADY_ANSWERS, Load
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.scale import times
from tests.support.service import Service

USER = NAME = "payments"
CLIENTS = 8
RESTARTS = times(3, long=20)

# What is promised while connections are refused, and while nothing is answered.
REFUSED_SECONDS_MAX = 1
SILENT_SECONDS_MAX = 3


class Gate:
    """A way to a server, on which every byte can be lost from now on, or from some words on: no answer, no refusal."""

    def __init__(self, port: int) -> None:
        self.server_port = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.is_open = threading.Event()
        self.is_open.set()
        self.last_words: bytes | None = None
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.is_open.wait()
                try:
                    server = socket.create_connection(("127.0.0.1", self.server_port))
                except ConnectionRefusedError:
                    client.close()
                    continue
                # Forward at once: a statement in two packets must not wait for an acknowledgement.
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self.forward, args=[one, other], daemon=True).start()

    def forward(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                if self.last_words is not None and self.last_words in data:
                    self.is_open.clear()
                self.is_open.wait()
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Faulty(NamedTuple):
    """A service, its server that a test may break, and the way between them."""

    service: Service
    server: BreakablePostgresql
    gate: Gate
    key: str
    log: Path

    def load(self) -> Load:
        return Load(self.service.port, self.key)

    def administer(self) -> psycopg.Connection[tuple[object, ...]]:
        """Connect as somebody else."""
        return psycopg.connect(self.server.url, dbname=NAME, autocommit=True)

    def forget_last_uses(self) -> None:
        """Have the next request write when its key was used."""
        with self.administer() as other:
            other.execute("UPDATE payments_apikey SET last_used_at = NULL")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    log = tmp_path_factory.mktemp("log") / "log"
    with breakable_postgresql() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {USER} LOGIN")
            connection.execute(f"CREATE DATABASE {NAME} OWNER {USER}")
        gate = Gate(server.port)
        # A server of two addresses: whoever tries one in vain tries the other.
        addresses = ",".join([f"127.0.0.1:{gate.port}"] * 2)
        service = Service(f"postgresql://{USER}@{addresses}/{NAME}", workers=2, log=log)
        service.migrate()
        with service.serving():
            service.create_demo_payments(500)
            yield Faulty(service, server, gate, service.create_api_key(organization=1001, mode="live"), log)


@pytest.mark.parametrize("end", [BreakablePostgresql.stop_immediately, BreakablePostgresql.kill])
def test_a_server_that_ends_under_load_is_missed_no_longer_than_it_is_gone(
    faulty: Faulty, end: Callable[[BreakablePostgresql], None]
) -> None:
    with faulty.load().of(CLIENTS) as load:
        for _ in range(-(-RESTARTS // 2)):
            load.wait_for(200, begun_after=time.monotonic())
            end(faulty.server)
            load.wait_for(503, begun_after=time.monotonic())
            faulty.server.start()
            load.assert_well_again(back_at=time.monotonic())

    load.assert_kept(seconds_max=REFUSED_SECONDS_MAX)
    load.tell(end.__name__)


def test_a_server_that_was_restarted_while_nobody_asked_is_not_missed_at_all(faulty: Faulty) -> None:
    with faulty.load().of(CLIENTS) as load:
        load.wait_for(200, begun_after=time.monotonic())
    faulty.server.stop_immediately()
    faulty.server.start()

    answers = [faulty.load().ask_once() for _ in range(CLIENTS)]

    assert {answer.status for answer in answers} == {200}


def assert_alive(faulty: Faulty, *, count: int) -> None:
    """Ask so often whether the process lives: it does, and says so when those before have been answered."""
    probes = Load(faulty.service.port, faulty.key, path="/healthz")
    for _ in range(count):
        probes.answers.append(probes.ask_once())
        time.sleep(0.1)
    assert {answer.status for answer in probes.answers} == {200}
    probes.assert_in_time(seconds_max=SILENT_SECONDS_MAX)


@contextmanager
def frozen(faulty: Faulty) -> Iterator[None]:
    faulty.server.freeze()
    yield
    faulty.server.thaw()


@contextmanager
def black_holed(faulty: Faulty) -> Iterator[None]:
    faulty.gate.is_open.clear()
    yield
    faulty.gate.is_open.set()


@pytest.mark.parametrize("fault", [frozen, black_holed])
def test_while_a_server_says_nothing_every_request_is_answered_in_time(
    faulty: Faulty, fault: Callable[[Faulty], AbstractContextManager[None]]
) -> None:
    with faulty.load().of(CLIENTS) as load:
        for _ in range(times(1, long=5)):
            load.wait_for(200, begun_after=time.monotonic())
            with fault(faulty):
                silent_at = time.monotonic()
                assert_alive(faulty, count=times(3, long=50))
                load.wait_for_each(503, begun_after=silent_at)
            load.assert_well_again(back_at=time.monotonic())

    load.assert_kept(seconds_max=SILENT_SECONDS_MAX)
    assert 503 in {answer.status for answer in load.answers}
    load.tell(fault.__name__)


def test_a_service_that_looks_at_no_clock_is_found_out(faulty: Faulty) -> None:
    unguarded = faulty.service.unguarded()
    with unguarded.serving():
        loads = [faulty.load(), Load(unguarded.port, faulty.key)]
        for load in loads:
            load.ask_until(lambda answer: answer.status == 200)
        with ThreadPoolExecutor() as pool, frozen(faulty):
            right, wrong = (pool.submit(load.ask_once) for load in loads)
            assert right.result().status == 503
            assert not wrong.done()

        assert wrong.result().status == 200


def test_a_packet_lost_where_the_last_use_is_written_is_waited_for_no_longer(faulty: Faulty) -> None:
    load = faulty.load()
    faulty.forget_last_uses()
    faulty.gate.last_words = b'UPDATE "payments_apikey"'
    try:
        until_lost = load.ask_until(lambda _answer: not faulty.gate.is_open.is_set())
        afterwards = load.ask_once()
    finally:
        faulty.gate.last_words = None
        faulty.gate.is_open.set()

    assert {answer.status for answer in until_lost} == {503}, "a page came without the statement"
    assert [answer for answer in [*until_lost, afterwards] if not answer.is_promised] == []
    with load.of(1):
        load.assert_well_again(back_at=time.monotonic())


def test_a_last_use_that_is_written_slowly_is_not_written(faulty: Faulty) -> None:
    load = faulty.load()
    faulty.forget_last_uses()
    with faulty.administer() as other:
        other.execute(
            "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_sleep(10); RETURN NEW; END $$"
        )
        other.execute("CREATE TRIGGER dawdle BEFORE UPDATE ON payments_apikey FOR EACH ROW EXECUTE FUNCTION dawdle()")
        try:
            answers = [load.ask_once() for _ in range(CLIENTS)]
        finally:
            other.execute("DROP FUNCTION dawdle CASCADE")
        ((written,),) = other.execute("SELECT count(last_used_at) FROM payments_apikey").fetchall()

    assert {answer.status for answer in answers} == {200}
    assert written == 0


@contextmanager
def locked(faulty: Faulty) -> Iterator[None]:
    with faulty.administer() as other, other.transaction():
        other.execute("LOCK TABLE payments_payment IN ACCESS EXCLUSIVE MODE")
        yield


@contextmanager
def slow(faulty: Faulty) -> Iterator[None]:
    with faulty.administer() as other:
        other.execute("ALTER TABLE payments_payment RENAME TO payments")
        other.execute("CREATE VIEW payments_payment AS SELECT * FROM payments WHERE pg_sleep(10) IS NOT NULL")
        other.execute(f"GRANT SELECT ON payments_payment TO {USER}")
        yield
        other.execute("DROP VIEW payments_payment")
        other.execute("ALTER TABLE payments RENAME TO payments_payment")


@contextmanager
def without_tables(faulty: Faulty) -> Iterator[None]:
    with faulty.administer() as other:
        other.execute("ALTER TABLE payments_payment RENAME TO payments")
        yield
        other.execute("ALTER TABLE payments RENAME TO payments_payment")


@contextmanager
def out_of_connections(faulty: Faulty) -> Iterator[None]:
    with faulty.administer() as other:
        other.execute(f"ALTER ROLE {USER} CONNECTION LIMIT 0")
        end_sessions(other)
        yield
        other.execute(f"ALTER ROLE {USER} CONNECTION LIMIT -1")


def end_sessions(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s", [USER])
    time.sleep(0.1)  # until the gate has told the service


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (locked, "canceling statement due to lock timeout"),
        (slow, "canceling statement due to statement timeout"),
        (without_tables, "does not exist"),
        (out_of_connections, "too many connections for role"),
    ],
)
def test_a_server_that_cannot_answer_is_said_to_be_unavailable(
    faulty: Faulty, fault: Callable[[Faulty], AbstractContextManager[None]], words: str
) -> None:
    said_before = len(faulty.log.read_text())
    with faulty.load().of(CLIENTS) as load:
        load.wait_for(200, begun_after=time.monotonic())
        with fault(faulty):
            load.wait_for_each(503, begun_after=time.monotonic())
        load.assert_well_again(back_at=time.monotonic())

    load.assert_kept(seconds_max=SILENT_SECONDS_MAX)
    assert words in faulty.log.read_text()[said_before:]
    load.tell(fault.__name__)


def test_filters_that_take_too_long_are_told_what_to_narrow_and_nobody_else_waits_for_them(faulty: Faulty) -> None:
    with slow(faulty):
        assert_told_what_to_narrow(faulty.service.base_url, faulty.key)


def test_a_server_that_may_only_be_read_is_read(faulty: Faulty) -> None:
    """As a replica is. When the key was used last cannot be written; no request fails for that."""
    faulty.forget_last_uses()
    with faulty.administer() as other:
        other.execute(f"ALTER ROLE {USER} SET default_transaction_read_only = on")
        end_sessions(other)
        try:
            with faulty.load().of(CLIENTS) as load:
                load.wait_for_each(200, begun_after=0, count=STEADY_ANSWERS)
        finally:
            other.execute(f"ALTER ROLE {USER} RESET default_transaction_read_only")
            end_sessions(other)

    assert {answer.status for answer in load.answers} == {200}


def test_a_failure_is_logged_in_a_line_that_names_the_database(faulty: Faulty) -> None:
    with without_tables(faulty):
        faulty.load().ask_once()

    assert (
        '"message": "The database payments failed: relation \\"payments_payment\\" does not exist'
        in faulty.log.read_text()
    )
