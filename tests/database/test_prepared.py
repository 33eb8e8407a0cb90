"""Statements that PostgreSQL has prepared: as a cursor runs them, whatever happens to their connection."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from psycopg.errors import FeatureNotSupported, SyntaxError  # noqa: A004  PostgreSQL's own name for it

from payments.database import prepared
from payments.database.prepared import PreparedStatements

pytestmark = [
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def statements() -> Iterator[PreparedStatements]:
    connection.close()
    connection.ensure_connection()
    yield PreparedStatements(connection.connection)
    connection.close()


def asked(sql: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values or None)
        return cursor.fetchall() if cursor.description else []


def known_to_server() -> set[str]:
    return {sql for (sql,) in asked("SELECT statement FROM pg_prepared_statements WHERE name LIKE 'payments%'")}


def test_a_value_stands_wherever_its_slot_does(statements: PreparedStatements) -> None:
    sql = "SELECT %(b)s::text, %(a)s::int, %(b)s::text || '100%%', NULL"

    assert statements.rows(sql, {"a": 7, "b": "é'\\%s"}) == [("é'\\%s", 7, "é'\\%s100%", None)]
    assert statements.rows(sql, {"a": -1, "b": ""}) == [("", -1, "100%", None)]
    assert statements.rows(sql, {"a": None, "b": None}) == [(None, None, None, None)]
    assert known_to_server() == {"SELECT $1::text, $2::int, $1::text || '100%', NULL"}


def test_only_the_latest_used_are_kept(statements: PreparedStatements, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "STATEMENTS_MAX", 2)

    for number in (1, 2, 1, 3):
        assert statements.rows(f"SELECT {number}", {}) == [(number,)]

    assert known_to_server() == {"SELECT 1", "SELECT 3"}


def test_a_statement_whose_table_has_changed_is_prepared_anew(statements: PreparedStatements) -> None:
    asked("CREATE TEMPORARY TABLE changing AS SELECT 1 AS value")
    assert statements.rows("SELECT value FROM changing", {}) == [(1,)]

    asked("ALTER TABLE changing ALTER value TYPE text")

    assert statements.rows("SELECT value FROM changing", {}) == [("1",)]


def test_a_statement_that_the_server_forgot_is_prepared_anew(statements: PreparedStatements) -> None:
    statements.rows("SELECT 1", {})

    asked("DEALLOCATE ALL")

    assert statements.rows("SELECT 1", {}) == [(1,)]


def test_who_shares_a_connection_shares_its_statements(statements: PreparedStatements) -> None:
    statements.rows("SELECT %(a)s::int", {"a": 1})

    assert PreparedStatements(statements.connection).rows("SELECT %(a)s::int", {"a": 2}) == [(2,)]


def test_within_a_transaction_the_failure_is_told_and_the_next_one_succeeds(statements: PreparedStatements) -> None:
    asked("CREATE TEMPORARY TABLE changing AS SELECT 1 AS value")
    statements.rows("SELECT value FROM changing", {})
    asked("ALTER TABLE changing ALTER value TYPE text")

    with transaction.atomic():
        asked("SELECT 1")  # with its first statement a transaction begins
        assert statements.are_ready()
        with pytest.raises(FeatureNotSupported):
            statements.rows("SELECT value FROM changing", {})
        transaction.set_rollback(True)

    assert statements.rows("SELECT value FROM changing", {}) == [("1",)]


def test_it_waits_until_a_transaction_has_begun(statements: PreparedStatements) -> None:
    assert statements.are_ready()
    with transaction.atomic():
        assert not statements.are_ready()


def test_what_the_server_refuses_is_told(statements: PreparedStatements) -> None:
    for _ in range(2):
        with pytest.raises(SyntaxError, match="at or near"):
            statements.rows("SELECT FROM WHERE", {})


def test_a_connection_that_the_server_ended_is_told(statements: PreparedStatements) -> None:
    statements.rows("SELECT 1", {})
    with psycopg.connect(connection.connection.info.dsn, password=connection.connection.info.password) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])

    with pytest.raises(psycopg.OperationalError):
        statements.rows("SELECT 1", {})
