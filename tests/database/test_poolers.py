"""Behind a pooler that lends a server's connection for one transaction: pgbouncer, as docs/poolers.md sets it up."""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from payments.database.postgresql.base import REQUEST_SETTINGS
from payments.database.prepared import STATEMENTS_MAX, PreparedStatements
from payments.models import Payment
from tests.support.connecting import connected_to
from tests.support.filters import assert_told_what_to_narrow
from tests.support.load import Load
from tests.support.pgbouncer import PASSWORD, Pgbouncer, require_pgbouncer
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.scale import times
from tests.support.service import Service, Walker

USER = NAME = "payments"
COMMANDS = "payments_commands"
ORGANIZATION = 1001
CLIENTS = 8
WORKERS = 3
SERVER_CONNECTIONS = 2
PAYMENTS = times(600, long=2000)
ROUNDS = times(2, long=3)

ANSWER_SECONDS_MAX = 3
LONGER_THAN_A_REQUEST_SECONDS = 3

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
    """A service, whose workers share fewer connections than there are of them, and what is between."""

    service: Service
    commands: Service
    pooler: Pgbouncer
    server: BreakablePostgresql
    key: str
    log: Path

    def load(self) -> Load:
        return Load(self.service.port, self.key)

    def administer(self) -> psycopg.Connection[tuple[object, ...]]:
        """Connect to the server, past the pooler."""
        return psycopg.connect(self.server.url, dbname=NAME, autocommit=True)

    def borrow(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Connect as a request does."""
        return psycopg.connect(self.pooler.url(NAME, user=USER), autocommit=True)

    @contextmanager
    def all_borrowed(self) -> Iterator[list[psycopg.Connection[tuple[Any, ...]]]]:
        """Have every one of the server's connections at once, each in a transaction of its own."""
        with ExitStack() as stack:
            borrowed = [stack.enter_context(self.borrow()) for _ in range(SERVER_CONNECTIONS)]
            for each in borrowed:
                stack.enter_context(each.transaction())
            yield borrowed


@contextmanager
def pooling(server: BreakablePostgresql, *, follows_statements: bool) -> Iterator[Pgbouncer]:
    directory = server.data.with_name("pooler" if follows_statements else "other_pooler")
    directory.mkdir()
    directory.chmod(0o755)
    pooler = Pgbouncer(directory, server.port, SERVER_CONNECTIONS, follows_statements=follows_statements)
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
    with pooling(server, follows_statements=True) as pooler:
        commands = Service(pooler.url(COMMANDS, user=USER))
        commands.migrate()
        commands.create_demo_payments(PAYMENTS)
        key = commands.create_api_key(organization=ORGANIZATION, mode="live")
        service = service_behind(pooler, log=log)
        with service.serving():
            yield Pooled(service, commands, pooler, server, key, log)


def service_behind(pooler: Pgbouncer, *, log: Path) -> Service:
    return Service(pooler.url(NAME, user=USER), workers=WORKERS, log=log)


@pytest.fixture(scope="module")
def expected(pooled: Pooled) -> list[list[str]]:
    """IDs of each list, queried by the ORM without a pooler."""
    with connected_to(f"postgresql://{USER}@127.0.0.1:{pooled.server.port}/{NAME}"):
        return [listed(path, lookups) for path, lookups in LISTS.items()]


def listed(path: str, lookups: dict[str, Any]) -> list[str]:
    order = ("created_at", "id") if "sort=asc" in path else ("-created_at", "-id")
    payments = Payment.objects.filter(organization_id=ORGANIZATION, mode="live", **lookups)
    return list(payments.order_by(*order).values_list("id", flat=True))


def walked(service: Service, key: str, path: str) -> list[str]:
    with Walker(service.base_url, key) as walker:
        pages = walker.walk("next", f"{service.base_url}{path}")
        return [payment["id"] for page in pages for payment in page["_embedded"]["payments"]]


def walked_at_once(service: Service, key: str) -> list[list[str]]:
    """Walk every list, by as many clients as there are lists."""
    with ThreadPoolExecutor(len(LISTS)) as clients:
        return list(clients.map(lambda path: walked(service, key, path), LISTS))


def test_walks_of_many_at_once_over_few_connections_are_right(pooled: Pooled, expected: list[list[str]]) -> None:
    found = [walked_at_once(pooled.service, pooled.key) for _ in range(ROUNDS)]

    assert found == [expected] * ROUNDS
    assert min(map(len, expected)) > 0
    pooled.pooler.command(f"RECONNECT {COMMANDS}")  # that of the last command
    with pooled.administer() as other:
        wait_for(other, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'payments'", SERVER_CONNECTIONS)


def test_behind_a_pooler_that_does_not_follow_what_is_prepared_every_answer_is_right(
    pooled: Pooled, expected: list[list[str]], tmp_path: Path
) -> None:
    """An old one, or one that is set up wrongly."""
    with pooling(pooled.server, follows_statements=False) as pooler:
        service = service_behind(pooler, log=tmp_path / "log")
        with service.serving():
            found = [walked_at_once(service, pooled.key) for _ in range(ROUNDS)]

    assert found == [expected] * ROUNDS
    assert 'prepared statement "payments_' in pooled.server.log.read_text(), "every statement was where it was prepared"


def test_what_was_prepared_is_prepared_once_on_each_connection_and_used_by_all(pooled: Pooled) -> None:
    pooled.pooler.command(f"RECONNECT {NAME}")
    busy = Load(pooled.service.port, pooled.key, pause_seconds=0)  # so that all connections are needed at once
    end = time.monotonic() + 20
    with busy.of(CLIENTS):
        while min(uses_of_a_page(pooled)) <= CLIENTS:
            assert time.monotonic() < end
            time.sleep(0.1)

    with pooled.all_borrowed() as borrowed:
        assert all(len(prepared(each)) < CLIENTS for each in borrowed)


def uses_of_a_page(pooled: Pooled) -> list[int]:
    """Return how often each server connection has run the page statement, which it prepares at most once."""
    with pooled.all_borrowed() as borrowed:
        pages = [[uses for statement, uses in prepared(each) if "LIMIT 21" in statement] for each in borrowed]
    assert max(map(len, pages)) <= 1
    return [sum(uses) for uses in pages]


def prepared(connection: psycopg.Connection[Any]) -> list[tuple[str, int]]:
    return connection.execute("SELECT statement, generic_plans FROM pg_prepared_statements").fetchall()


def test_limits_of_requests_hold_on_every_connection_as_it_is_made(pooled: Pooled) -> None:
    expected = {**REQUEST_SETTINGS, "plan_cache_mode": "force_generic_plan"}
    pooled.pooler.command(f"RECONNECT {NAME}")

    with pooled.all_borrowed() as borrowed:
        for each in borrowed:
            held = {name: each.execute(f"SHOW {name}").fetchone() for name in expected}
            assert held == {name: (value,) for name, value in expected.items()}


@pytest.fixture
def clients(pooled: Pooled) -> Iterator[list[PreparedStatements]]:
    with ExitStack() as stack:
        yield [PreparedStatements(stack.enter_context(pooled.borrow())) for _ in range(CLIENTS)]


def test_more_statements_than_are_kept_are_right_and_forgotten_again(
    pooled: Pooled, clients: list[PreparedStatements]
) -> None:
    numbers = [*range(STATEMENTS_MAX * 3), 1, 2]

    for number in numbers:
        for each in clients:
            assert each.rows(f"SELECT {number} + %(more)s::int", {"more": number}) == [(2 * number,)]

    assert {len(each.statements) for each in clients} == {STATEMENTS_MAX}
    with pooled.all_borrowed() as borrowed:
        for server in borrowed:
            ((kept,),) = server.execute("SELECT count(*) FROM pg_prepared_statements").fetchall()
            assert kept <= 2 * STATEMENTS_MAX


def test_a_migration_meanwhile_is_survived_and_a_reconnection_has_statements_prepared_anew(
    pooled: Pooled, clients: list[PreparedStatements]
) -> None:
    sql = "SELECT value FROM changing"
    with pooled.administer() as other:
        other.execute("CREATE TABLE changing AS SELECT 1 AS value")
        other.execute(f"GRANT SELECT ON changing TO {USER}")
        with pooled.load().of(CLIENTS) as load:
            assert [each.rows(sql, {}) for each in clients * 2] == [[(1,)]] * CLIENTS * 2
            other.execute("ALTER TABLE changing ALTER value TYPE text")
            other.execute("ALTER TABLE payments_payment ADD COLUMN later integer NOT NULL DEFAULT 0")
            assert [each.rows(sql, {}) for each in clients * 2] == [[("1",)]] * CLIENTS * 2
            other.execute("ALTER TABLE payments_payment DROP COLUMN later")
            pooled.pooler.command(f"RECONNECT {NAME}")
            assert [each.rows(sql, {}) for each in clients * 2] == [[("1",)]] * CLIENTS * 2
        other.execute("DROP TABLE changing")

    assert {answer.status for answer in load.answers} == {200}
    assert [sql in each.statements for each in clients] == [True] * CLIENTS


def restart_pooler(pooled: Pooled, load: Load) -> None:
    pooled.pooler.kill()
    load.wait_for_each(503, begun_after=time.monotonic())
    pooled.pooler.start()


def restart_server(pooled: Pooled, load: Load) -> None:
    pooled.server.stop_immediately()
    load.wait_for_each(503, begun_after=time.monotonic())
    pooled.server.start()


def kill_server(pooled: Pooled, load: Load) -> None:
    pooled.server.kill()
    load.wait_for_each(503, begun_after=time.monotonic())
    pooled.server.start()


def freeze_server(pooled: Pooled, load: Load) -> None:
    pooled.server.freeze()
    load.wait_for_each(503, begun_after=time.monotonic())
    pooled.server.thaw()


@pytest.mark.parametrize("fault", [restart_pooler, restart_server, kill_server, freeze_server])
def test_a_restart_is_missed_no_longer_than_it_lasts(pooled: Pooled, fault: Callable[[Pooled, Load], None]) -> None:
    with pooled.load().of(CLIENTS) as load:
        load.wait_for(200, begun_after=time.monotonic())
        begun_at = time.monotonic()
        fault(pooled, load)
        load.assert_well_again(back_at=time.monotonic())

    assert 503 in {answer.status for answer in load.begun_after(begun_at)}
    load.assert_kept(seconds_max=ANSWER_SECONDS_MAX)


def test_filters_that_take_too_long_are_ended_by_the_server_itself(pooled: Pooled) -> None:
    with pooled.administer() as other:
        other.execute("ALTER TABLE payments_payment RENAME TO payments")
        other.execute("CREATE VIEW payments_payment AS SELECT * FROM payments WHERE pg_sleep(10) IS NOT NULL")
        other.execute(f"GRANT SELECT ON payments_payment TO {USER}")
        try:
            assert_told_what_to_narrow(pooled.service.base_url, pooled.key)
            ((running,),) = other.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND usename = %s", [USER]
            ).fetchall()
        finally:
            other.execute("DROP VIEW payments_payment")
            other.execute("ALTER TABLE payments RENAME TO payments_payment")

    assert running == 0
    assert pooled.load().ask_once().status == 200


def descriptions(pooled: Pooled) -> set[object]:
    with pooled.administer() as other:
        return {first for (first,) in other.execute("SELECT DISTINCT left(description, 5) FROM payments_payment")}


@pytest.fixture
def described(pooled: Pooled, tmp_path: Path) -> Path:
    """A file of all payments, each with another description."""
    file = tmp_path / "payments.jsonl"
    exported = pooled.commands.exported()
    file.write_text(exported.replace('"description":"', '"description":"again '))
    return file


@contextmanager
def waited_for(pooled: Pooled) -> Iterator[psycopg.Connection[Any]]:
    """Have an import that has just begun wait as long as the block lasts; give a connection to look on by."""
    with pooled.administer() as locking, locking.transaction(), pooled.administer() as looking:
        locking.execute("LOCK TABLE payments_payment IN SHARE MODE")
        wait_for(looking, WAITING, 1)
        yield looking


def test_an_import_that_is_interrupted_is_ended_on_the_server_too(pooled: Pooled, described: Path) -> None:
    with pooled.commands.popen("import_payments", str(described)) as command, waited_for(pooled) as looking:
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=60)
        wait_for(looking, WAITING, 0)

    assert command.returncode == 130
    assert "again" not in descriptions(pooled)


def test_an_import_by_the_way_of_requests_has_their_limits_and_then_changes_nothing(
    pooled: Pooled, described: Path
) -> None:
    by_the_wrong_way = Service(pooled.pooler.url(NAME, user=USER))
    with by_the_wrong_way.popen("import_payments", str(described)) as command, waited_for(pooled):
        _, words = command.communicate(timeout=60)

    assert command.returncode == 1
    assert b"nothing was changed: canceling statement due to" in words
    assert "again" not in descriptions(pooled)


def test_an_import_may_take_longer_than_a_request_beside_readers(pooled: Pooled, described: Path) -> None:
    with pooled.load().of(CLIENTS) as load, pooled.commands.popen("import_payments", str(described)) as command:
        with waited_for(pooled):
            time.sleep(LONGER_THAN_A_REQUEST_SECONDS)
        _, words = command.communicate(timeout=60)

    assert command.returncode == 0, words
    assert {answer.status for answer in load.answers} == {200}
    assert descriptions(pooled) == {"again"}


def test_a_revoked_key_is_refused_at_once(pooled: Pooled) -> None:
    key = pooled.commands.create_api_key(organization=ORGANIZATION, mode="live")
    load = Load(pooled.service.port, key)
    assert {load.ask_once().status for _ in range(CLIENTS * 2)} == {200}

    pooled.commands.revoke_api_key(key)

    assert {load.ask_once().status for _ in range(CLIENTS * 2)} == {401}


def wait_for(connection: psycopg.Connection[Any], sql: Any, expected: int) -> None:
    end = time.monotonic() + 20
    while connection.execute(sql).fetchone() != (expected,):
        assert time.monotonic() < end, sql
        time.sleep(0.05)
