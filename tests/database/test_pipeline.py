"""Several statements in one round trip: each has its own result, and a broken connection is never used again."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from psycopg.errors import DivisionByZero, QueryCanceled
from psycopg.pq import PipelineStatus, TransactionStatus
from pytest_django import Settings

from payments.access.keys import key_statement
from payments.database import round_trips
from payments.database.postgresql.base import TimedConnection
from payments.database.prepared import PreparedStatements
from payments.runtime.process import process
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.sql import execute
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgresql")]

DIVIDE = "SELECT 6 / %(divisor)s::int"


@dataclass
class Sql:
    """SQL that is not made from a QuerySet."""

    sql: str
    is_planned_each_time: bool


class Query(NamedTuple):
    """SQL and the values of its placeholders."""

    statement: Sql
    values: dict[str, Any]


def query(sql: str, values: dict[str, Any], *, is_planned_each_time: bool = False) -> Query:
    return Query(Sql(sql, is_planned_each_time), values)


def outcomes(statements: PreparedStatements, *queries: Query) -> list[Any]:
    """Return the rows of each statement, or the class of its error."""
    return [outcome if isinstance(outcome, list) else type(outcome) for outcome in statements.run_together(queries)]


def divide(divisor: int, *, is_planned_each_time: bool = False) -> Query:
    return query(DIVIDE, {"divisor": divisor}, is_planned_each_time=is_planned_each_time)


def is_idle(statements: PreparedStatements) -> bool:
    return statements.connection.pgconn.pipeline_status == PipelineStatus.OFF


def test_each_statement_has_its_own_rows(statements: PreparedStatements) -> None:
    runs = [divide(1), query("SELECT generate_series(1, 3)", {}), query("SELECT WHERE false", {}), divide(2)]

    assert outcomes(statements, *runs) == [[(6,)], [(1,), (2,), (3,)], [], [(3,)]]
    assert is_idle(statements)


@pytest.mark.parametrize("is_planned_each_time", [False, True])
def test_error_of_one_statement_does_not_affect_the_others(
    statements: PreparedStatements, is_planned_each_time: bool
) -> None:
    first, second = (divide(divisor, is_planned_each_time=is_planned_each_time) for divisor in (0, 2))

    assert outcomes(statements, first, second, first) == [DivisionByZero, [(3,)], DivisionByZero]
    assert is_idle(statements)
    assert statements.rows("SELECT 1", {}) == [(1,)]


def test_statement_planned_each_time_contains_its_values(statements: PreparedStatements) -> None:
    text = "é'\\%s"
    run = query("SELECT %(text)s || '%%'", {"text": text}, is_planned_each_time=True)

    assert outcomes(statements, divide(1), run) == [[(6,)], [(f"{text}%",)]]


def test_timeout_of_one_statement_does_not_affect_the_others(statements: PreparedStatements) -> None:
    execute("SET statement_timeout = '50ms'")

    assert outcomes(statements, divide(1), query("SELECT pg_sleep(60)::text", {}), divide(2)) == [
        [(6,)],
        QueryCanceled,
        [(3,)],
    ]


def test_unusable_statements_are_prepared_again(statements: PreparedStatements) -> None:
    execute("CREATE TEMPORARY TABLE changing AS SELECT 1 AS value")
    runs = [query("SELECT value FROM changing", {}), divide(1)]
    assert outcomes(statements, *runs) == [[(1,)], [(6,)]]

    execute("ALTER TABLE changing ALTER value TYPE text")
    assert outcomes(statements, *runs) == [[("1",)], [(6,)]]
    execute("DEALLOCATE ALL")
    assert outcomes(statements, *runs) == [[("1",)], [(6,)]]


def test_statements_run_in_the_current_transaction(statements: PreparedStatements) -> None:
    with transaction.atomic():
        execute("CREATE TEMPORARY TABLE uncommitted AS SELECT 7 AS value")

        assert outcomes(statements, query("SELECT value FROM uncommitted", {}), divide(1)) == [[(7,)], [(6,)]]
        transaction.set_rollback(True)


def test_long_statements_and_results_are_exchanged_completely(statements: PreparedStatements) -> None:
    text = "x" * 10_000_000
    run = query("SELECT %(text)s::text", {"text": text})

    assert outcomes(statements, run, divide(1), run) == [[(text,)], [(6,)], [(text,)]]


def end(server: psycopg.Connection[Any]) -> None:
    info = connection.connection.info
    server.execute("SELECT pg_terminate_backend(%s, 5000)", [info.backend_pid])


@pytest.fixture
def administrator() -> Iterator[psycopg.Connection[Any]]:
    connection.ensure_connection()
    info = connection.connection.info
    with psycopg.connect(info.dsn, password=info.password, autocommit=True) as other:
        yield other


def test_ended_connection_fails_and_is_closed(
    statements: PreparedStatements, administrator: psycopg.Connection[Any]
) -> None:
    outcomes(statements, divide(1), divide(2))
    end(administrator)

    assert outcomes(statements, divide(1), divide(2)) == [psycopg.OperationalError] * 2
    assert statements.connection.closed


def test_results_before_the_end_of_the_connection_are_kept(
    statements: PreparedStatements, administrator: psycopg.Connection[Any]
) -> None:
    sleep = query("SELECT pg_sleep(60)::text", {})
    statements.find_or_prepare(sleep.statement.sql)
    process_id = connection.connection.info.backend_pid
    ending = threading.Thread(target=end_when_it_sleeps, args=[administrator, process_id])
    ending.start()

    first, *others = outcomes(statements, divide(1), sleep, divide(2))
    ending.join()

    assert first == [(6,)]
    assert all(issubclass(other, psycopg.OperationalError) for other in others)
    assert statements.connection.closed
    with pytest.raises(psycopg.OperationalError):
        statements.rows("SELECT 1", {})


def end_when_it_sleeps(server: psycopg.Connection[Any], process_id: int) -> None:
    query = "SELECT wait_event FROM pg_stat_activity WHERE pid = %s"
    wait_until(lambda: server.execute(query, [process_id]).fetchone() == ("PgSleep",))
    server.execute("SELECT pg_terminate_backend(%s)", [process_id])


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_interrupted_exchange_closes_the_connection(
    statements: PreparedStatements, interruption: type[BaseException]
) -> None:
    def interrupt() -> None:
        raise interruption

    statements.find_or_prepare(DIVIDE)
    with pytest.raises(interruption):
        list(statements.pipeline.exchange([interrupt]))

    assert statements.connection.closed


@pytest.fixture(scope="module")
def breakable() -> Iterator[BreakablePostgresql]:
    with breakable_postgresql() as server:
        yield server


@pytest.fixture
def frozen(breakable: BreakablePostgresql) -> Iterator[PreparedStatements]:
    """A connection within a transaction, to a server that does not respond. It has prepared `DIVIDE`."""
    with TimedConnection.connect(breakable.url) as opened:
        statements = PreparedStatements(opened)
        statements.find_or_prepare(DIVIDE)
        opened.execute("SELECT 1")
        breakable.freeze()
        yield statements
        breakable.thaw()


def run_statement(statements: PreparedStatements) -> None:
    statements.connection.execute("SELECT 1")


def commit(statements: PreparedStatements) -> None:
    statements.connection.commit()


def run_prepared(statements: PreparedStatements) -> None:
    statements.rows(DIVIDE, {"divisor": 1})


def prepare(statements: PreparedStatements) -> None:
    statements.rows("SELECT 1", {})


def run_unprepared(statements: PreparedStatements) -> None:
    statements.find_or_prepare(DIVIDE).rows_unprepared({"divisor": 1})


def send_more_than_the_server_reads(statements: PreparedStatements) -> None:
    statements.rows(DIVIDE, {"divisor": "1" * 50_000_000})


def close_statement(statements: PreparedStatements) -> None:
    statements.find_or_prepare(DIVIDE).close()


WAITS = [
    run_statement,
    commit,
    run_prepared,
    prepare,
    run_unprepared,
    send_more_than_the_server_reads,
    close_statement,
    PreparedStatements.discard_plans,
]


@pytest.mark.processes
@pytest.mark.parametrize("wait", WAITS)
def test_wait_for_a_frozen_server_ends_at_the_deadline(
    frozen: PreparedStatements, wait: Callable[[PreparedStatements], None], settings: Settings
) -> None:
    settings.REQUEST_SECONDS_MAX = 0

    with process.deadline, pytest.raises(psycopg.OperationalError, match="before the deadline"):
        wait(frozen)

    assert frozen.connection.closed


@pytest.mark.processes
def test_statements_without_a_result_at_the_deadline_fail(frozen: PreparedStatements, settings: Settings) -> None:
    settings.REQUEST_SECONDS_MAX = 0

    with process.deadline:
        assert outcomes(frozen, divide(1), divide(2)) == [psycopg.OperationalError] * 2

    assert frozen.connection.closed


@pytest.mark.processes
def test_first_expired_wait_lets_another_server_use_the_rest(
    frozen: PreparedStatements, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadline = process.deadline
    with deadline:
        monkeypatch.setattr(deadline, "failover_seconds", 60)
        with pytest.raises(psycopg.OperationalError):
            run_prepared(frozen)

        assert deadline.failover_seconds == 0


@pytest.mark.processes
@pytest.mark.parametrize("run", [run_statement, run_prepared])
def test_waiting_for_a_frozen_server_lets_other_threads_run(
    frozen: PreparedStatements, run: Callable[[PreparedStatements], None], breakable: BreakablePostgresql
) -> None:
    """If the wait held the global lock, the thread that thaws the server could not run: the test would hang."""
    waiting = threading.Thread(target=run, args=[frozen])
    waiting.start()
    wait_until(lambda: frozen.connection.pgconn.transaction_status == TransactionStatus.ACTIVE)
    breakable.thaw()
    waiting.join()

    assert not frozen.connection.closed


def test_connection_that_is_lost_before_its_first_statement_raises_djangos_error() -> None:
    connection.close()
    connection.ensure_connection()
    connection.connection.close()

    with pytest.raises(OperationalError):
        round_trips.run_together([round_trips.Query(key_statement(), {"digest": "", "now": "2026-01-01"})])

    connection.close()
