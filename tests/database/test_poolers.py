"""The service behind PgBouncer in transaction mode, as docs/poolers.md sets it up."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from tempfile import mkdtemp
from typing import Any, NamedTuple

import psycopg
import pytest

from payments.database.postgresql.planning import PLANNER_SETTINGS, SESSION_SETTINGS
from payments.models import Payment
from tests.database.pgbouncer import PASSWORD, Pgbouncer, require_pgbouncer
from tests.support.connecting import connected_to
from tests.support.list_errors import assert_timeout_names_created_at, slow_payments
from tests.support.load import Load
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.scale import times
from tests.support.service import USUAL_LIMITS, Service, Walker
from tests.support.waiting import SECONDS_MAX, wait_until

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.processes, pytest.mark.extended]

USER = NAME = "payments"
COMMANDS = "payments_commands"
ORGANIZATION = 1001
CLIENTS = 8
WORKERS = 3
SERVER_CONNECTIONS = 2
PAYMENTS = times(600, long=2000)
ROUNDS = times(2, long=3)

# Each worker keeps at most so many prepared statements.
STATEMENTS_MAX = 100

RESPONSE_SECONDS_MAX = 3
BEYOND_REQUEST_LIMITS_SECONDS = 3
WORD_LENGTH = 5

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

# The URL of each list, and the same filters as ORM lookups.
LISTS: dict[str, dict[str, Any]] = {
    "/v2/payments?limit=7": {},
    "/v2/payments?limit=250": {},
    "/v2/payments?limit=100&sort=asc": {},
    "/v2/payments?limit=50&status=succeeded": {"status": "succeeded"},
    "/v2/payments?limit=20&status=open,pending,failed": {"status__in": ["open", "pending", "failed"]},
    "/v2/payments?limit=90&currency=EUR&amount%5Bgte%5D=20.00": {"amount_currency": "EUR", "amount__gte": 20},
    "/v2/payments?limit=31&method=creditcard&sort=asc": {"method": "creditcard"},
    "/v2/payments?limit=40&sequenceType=oneoff": {"sequence_type": "oneoff"},
}


class Pooled(NamedTuple):
    """A service whose workers share fewer server connections than there are workers."""

    service: Service
    commands: Service
    pooler: Pgbouncer
    server: BreakablePostgresql
    key: str

    def load(self) -> Load:
        return Load(self.service.port, self.key)

    def administer(self) -> psycopg.Connection[tuple[object, ...]]:
        """Connect directly to the server."""
        return psycopg.connect(self.server.url, dbname=NAME, autocommit=True)

    def borrow(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Connect through the pooler as a request does."""
        return psycopg.connect(self.pooler.url(NAME, user=USER), autocommit=True)

    @contextmanager
    def all_borrowed(self) -> Iterator[list[psycopg.Connection[tuple[Any, ...]]]]:
        """Borrow all server connections at once, each for a transaction."""
        with ExitStack() as stack:
            borrowed = [stack.enter_context(self.borrow()) for _ in range(SERVER_CONNECTIONS)]
            for connection in borrowed:
                stack.enter_context(connection.transaction())
            yield borrowed


@contextmanager
def pooling(server: BreakablePostgresql, *, tracks_statements: bool) -> Iterator[Pgbouncer]:
    directory = Path(mkdtemp(prefix="pooler-", dir=server.data.parent))
    directory.chmod(0o755)
    pooler = Pgbouncer(directory, server.port, SERVER_CONNECTIONS, tracks_statements=tracks_statements)
    pooler.configure(user=USER)
    pooler.start()
    try:
        yield pooler
    finally:
        if pooler.process is not None:
            pooler.kill()


@pytest.fixture(scope="module")
def server() -> Iterator[BreakablePostgresql]:
    require_pgbouncer()
    with breakable_postgresql() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
            connection.execute(f"CREATE DATABASE {NAME} OWNER {USER}")
        yield server


@pytest.fixture(scope="module")
def pooled(server: BreakablePostgresql, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pooled]:
    log = tmp_path_factory.mktemp("log") / "log"
    with pooling(server, tracks_statements=True) as pooler:
        commands = Service(pooler.url(COMMANDS, user=USER))
        commands.migrate()
        commands.create_demo_payments(PAYMENTS)
        key = commands.create_api_key(organization=ORGANIZATION, mode="live")
        service = service_behind(pooler, log=log)
        with service.serving():
            yield Pooled(service, commands, pooler, server, key)


@pytest.fixture(scope="module")
def limited(pooled: Pooled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pooled]:
    """The same with the time limits of requests, for tests of faults."""
    log = tmp_path_factory.mktemp("limited") / "log"
    service = service_behind(pooled.pooler, log=log, **USUAL_LIMITS)
    with service.serving():
        yield pooled._replace(service=service)


def service_behind(pooler: Pgbouncer, *, log: Path, **settings: str) -> Service:
    return Service(pooler.url(NAME, user=USER), settings=settings, workers=WORKERS, log=log)


@pytest.fixture(autouse=True)
def healthy(pooled: Pooled) -> None:
    """Wait until all requests are served, as before the test of a fault."""
    with pooled.load().running(CLIENTS) as load:
        load.wait_for_all(200, after=time.monotonic(), count=10)


@pytest.fixture(scope="module")
def expected(pooled: Pooled) -> list[list[str]]:
    """IDs of each list, queried by the ORM without a pooler."""
    with connected_to(f"postgresql://{USER}@127.0.0.1:{pooled.server.port}/{NAME}"):
        return [listed(path, lookups) for path, lookups in LISTS.items()]


def listed(path: str, lookups: dict[str, Any]) -> list[str]:
    order = ("created_at", "id") if "sort=asc" in path else ("-created_at", "-id")
    payments = Payment.objects.filter(organization_id=ORGANIZATION, mode="live", **lookups)
    return list(payments.order_by(*order).values_list("id", flat=True))


def walk(service: Service, key: str, path: str) -> list[str]:
    with Walker(service.base_url, key) as walker:
        pages = walker.walk("next", f"{service.base_url}{path}")
        return [payment["id"] for page in pages for payment in page["_embedded"]["payments"]]


def walk_concurrently(service: Service, key: str) -> list[list[str]]:
    """Walk all lists at once, with one client for each."""
    # No more clients than the requests with filters of one key that a worker admits.
    with ThreadPoolExecutor(3) as clients:
        return list(clients.map(lambda path: walk(service, key, path), LISTS))


def test_concurrent_walks_over_few_connections_are_correct(pooled: Pooled, expected: list[list[str]]) -> None:
    walks = [walk_concurrently(pooled.service, pooled.key) for _ in range(ROUNDS)]

    assert walks == [expected] * ROUNDS
    assert min(map(len, expected)) > 0
    pooled.pooler.execute(f"RECONNECT {COMMANDS}")  # close the last command's connection
    with pooled.administer() as other:
        wait_for_value(other, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'payments'", SERVER_CONNECTIONS)


@pytest.fixture
def untracked(pooled: Pooled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pooled]:
    """A pooler that does not track prepared statements: an old version, or one with a wrong configuration."""
    log = tmp_path_factory.mktemp("untracked") / "log"
    with pooling(pooled.server, tracks_statements=False) as pooler:
        yield pooled._replace(pooler=pooler, service=service_behind(pooler, log=log))


def test_pooler_without_tracking_works_without_prepared_statements(
    untracked: Pooled, expected: list[list[str]]
) -> None:
    length_before = len(untracked.server.log.read_text())
    service = replace(untracked.service, database_url=f"{untracked.service.database_url}?prepare_threshold=off")
    with service.serving():
        walks = [walk_concurrently(service, untracked.key) for _ in range(ROUNDS)]

    assert walks == [expected] * ROUNDS
    assert "prepared statement" not in untracked.server.log.read_text()[length_before:]


def test_page_of_a_statement_that_a_pooler_mixes_up_is_an_error(untracked: Pooled, expected: list[list[str]]) -> None:
    """A page that a client took for the last one would end its walk."""
    service, limits = untracked.service, [7, 250, 100, 20]

    def fetch(number: int) -> int:
        limit = limits[number % len(limits)]
        with Walker(service.base_url, untracked.key) as walker:
            response, body = walker.send(f"{service.base_url}/v2/payments?limit={limit}")
        if response.status == 200:
            ids = [payment["id"] for payment in json.loads(body)["_embedded"]["payments"]]
            assert ids == expected[0][:limit]
        return response.status

    with service.serving(), ThreadPoolExecutor(CLIENTS) as clients:
        statuses = set(clients.map(fetch, range(400)))

    assert statuses == {200, 503}
    assert service.log is not None
    assert "Add prepare_threshold=off to DATABASE_URL" in service.log.read_text()


def test_statement_is_prepared_once_for_each_server_connection(pooled: Pooled) -> None:
    pooled.pooler.execute(f"RECONNECT {NAME}")
    busy = Load(pooled.service.port, pooled.key, pause_seconds=0)  # so that all connections are in use at once
    with busy.running(CLIENTS):
        wait_until(lambda: min(uses_of_a_page(pooled)) > CLIENTS, poll_seconds=0.1)

    with pooled.all_borrowed() as borrowed:
        assert all(len(prepared_statements(connection)) < CLIENTS for connection in borrowed)


def uses_of_a_page(pooled: Pooled) -> list[int]:
    """Return how often each server connection has run the statement of a page, which it prepares at most once."""
    with pooled.all_borrowed() as borrowed:
        uses = [
            [count for sql, count in prepared_statements(connection) if "LIMIT 21" in sql] for connection in borrowed
        ]
    assert max(map(len, uses)) <= 1
    return list(map(sum, uses))


def prepared_statements(connection: psycopg.Connection[Any]) -> list[tuple[str, int]]:
    return connection.execute("SELECT statement, generic_plans FROM pg_prepared_statements").fetchall()


def test_new_server_connection_has_the_limits_of_requests(pooled: Pooled) -> None:
    limits = {"statement_timeout": "2s", "lock_timeout": "1s"}
    expected = {**limits, **PLANNER_SETTINGS, **SESSION_SETTINGS, "plan_cache_mode": "force_generic_plan"}
    expected["DateStyle"] = "ISO, MDY"
    pooled.pooler.execute(f"RECONNECT {NAME}")

    with pooled.all_borrowed() as borrowed:
        for connection in borrowed:
            settings = {name: connection.execute(f"SHOW {name}").fetchone() for name in expected}
            assert settings == {name: (value,) for name, value in expected.items()}


def test_statements_beyond_the_limit_are_correct_and_removed(pooled: Pooled, expected: list[list[str]]) -> None:
    limits = [*range(1, 251), 1, 2]
    with Walker(pooled.service.base_url, pooled.key) as walker:
        for limit in limits:
            page = walker.get(f"{pooled.service.base_url}/v2/payments?limit={limit}")
            assert [payment["id"] for payment in page["_embedded"]["payments"]] == expected[0][:limit]

    with pooled.all_borrowed() as borrowed:
        assert all(len(prepared_statements(server)) <= 2 * STATEMENTS_MAX for server in borrowed)


def test_statements_are_prepared_again_after_a_migration_or_a_reconnection(
    pooled: Pooled, expected: list[list[str]]
) -> None:
    with pooled.administer() as other, pooled.load().running(CLIENTS) as load:
        for change in ("ALTER description TYPE varchar(300)", "ADD COLUMN later integer NOT NULL DEFAULT 0"):
            assert walk_concurrently(pooled.service, pooled.key) == expected
            other.execute(f"ALTER TABLE payments_payment {change}")
            assert walk_concurrently(pooled.service, pooled.key) == expected
        other.execute("ALTER TABLE payments_payment DROP COLUMN later, ALTER description TYPE text")
        pooled.pooler.execute(f"RECONNECT {NAME}")
        assert walk_concurrently(pooled.service, pooled.key) == expected

    assert {response.status for response in load.responses} == {200}


def restart_pooler(pooled: Pooled, load: Load) -> None:
    pooled.pooler.kill()
    load.wait_for_all(503, after=time.monotonic())
    pooled.pooler.start()


def restart_server(pooled: Pooled, load: Load) -> None:
    pooled.server.stop_immediately()
    load.wait_for_all(503, after=time.monotonic())
    pooled.server.start()


def kill_server(pooled: Pooled, load: Load) -> None:
    pooled.server.kill()
    load.wait_for_all(503, after=time.monotonic())
    pooled.server.start()


def freeze_server(pooled: Pooled, load: Load) -> None:
    with pooled.server.frozen():
        load.wait_for_all(503, after=time.monotonic())


@pytest.mark.parametrize("fault", [restart_pooler, restart_server, kill_server, freeze_server])
def test_service_recovers_from_a_restart(limited: Pooled, fault: Callable[[Pooled, Load], None]) -> None:
    with limited.load().running(CLIENTS) as load:
        load.wait_for(200, after=time.monotonic())
        started_at = time.monotonic()
        fault(limited, load)
        load.assert_recovered(repaired_at=time.monotonic())

    assert 503 in {response.status for response in load.sent_after(started_at)}
    load.assert_expected(seconds_max=RESPONSE_SECONDS_MAX)


def test_slow_filters_are_ended_by_the_server(pooled: Pooled) -> None:
    with pooled.administer() as other, slow_payments(other, user=USER):
        assert_timeout_names_created_at(pooled.service.base_url, pooled.key)
        ((running,),) = other.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND usename = %s", [USER]
        ).fetchall()

    assert running == 0
    assert pooled.load().get().status == 200


def words(pooled: Pooled) -> set[object]:
    """Return the words with which the descriptions of the payments begin."""
    with pooled.administer() as other:
        query = "SELECT DISTINCT left(description, %s) FROM payments_payment"
        return {word for (word,) in other.execute(query, [WORD_LENGTH])}


class Changed(NamedTuple):
    """A file of all payments, whose descriptions begin with another word."""

    path: str
    word: str


@pytest.fixture
def changed(pooled: Pooled, tmp_path: Path) -> Changed:
    file, word = tmp_path / "payments.jsonl", token_hex(WORD_LENGTH)[:WORD_LENGTH]
    exported = pooled.commands.exported()
    file.write_text(exported.replace('"description":"', f'"description":"{word} '))
    return Changed(str(file), word)


@contextmanager
def blocked_import(pooled: Pooled) -> Iterator[psycopg.Connection[Any]]:
    """Block an import that has just started until the block ends. Yields a connection for other queries."""
    with pooled.administer() as locking, locking.transaction(), pooled.administer() as monitoring:
        locking.execute("LOCK TABLE payments_payment IN SHARE MODE")
        wait_for_value(monitoring, WAITING, 1)
        yield monitoring


def test_interrupted_import_ends_its_statement_on_the_server(pooled: Pooled, changed: Changed) -> None:
    with pooled.commands.popen("import_payments", changed.path) as command, blocked_import(pooled) as monitoring:
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=SECONDS_MAX)
        wait_for_value(monitoring, WAITING, 0)

    assert command.returncode == 130
    assert changed.word not in words(pooled)


def test_import_through_the_pool_for_requests_has_their_limits(pooled: Pooled, changed: Changed) -> None:
    wrong_pool = Service(pooled.pooler.url(NAME, user=USER), settings=USUAL_LIMITS)
    with wrong_pool.popen("import_payments", changed.path) as command, blocked_import(pooled):
        _, errors = command.communicate(timeout=SECONDS_MAX)

    assert command.returncode == 1
    assert b"nothing was changed: canceling statement due to" in errors
    assert changed.word not in words(pooled)


def test_import_can_exceed_the_limits_of_requests_while_clients_read(pooled: Pooled, changed: Changed) -> None:
    with (
        pooled.load().running(CLIENTS) as load,
        pooled.commands.popen("import_payments", changed.path) as command,
    ):
        with blocked_import(pooled):
            time.sleep(BEYOND_REQUEST_LIMITS_SECONDS)
        _, errors = command.communicate(timeout=SECONDS_MAX)

    assert command.returncode == 0, errors
    assert {response.status for response in load.responses} == {200}
    assert words(pooled) == {changed.word}


def test_revoked_key_is_refused_immediately(pooled: Pooled) -> None:
    key = pooled.commands.create_api_key(organization=ORGANIZATION, mode="live")
    load = Load(pooled.service.port, key)
    assert {load.get().status for _ in range(CLIENTS * 2)} == {200}

    pooled.commands.revoke_api_key(key)

    assert {load.get().status for _ in range(CLIENTS * 2)} == {401}


def wait_for_value(connection: psycopg.Connection[Any], sql: Any, expected: int) -> None:
    wait_until(lambda: connection.execute(sql).fetchone() == (expected,), explain=lambda: sql)
