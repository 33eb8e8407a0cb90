"""Prepared statements return the same rows as a cursor, whatever happens to their connection."""

import psycopg
import pytest
from django.db import connection, transaction
from psycopg.errors import FeatureNotSupported, SyntaxError  # noqa: A004  PostgreSQL's own name for it

from payments.database import prepared
from payments.database.prepared import PreparedStatements
from payments.database.runners import can_run_directly
from tests.support.sql import execute

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgresql")]


def prepared_on_server() -> set[str]:
    return {sql for (sql,) in execute("SELECT statement FROM pg_prepared_statements WHERE name LIKE 'payments\\_%'")}


def test_value_is_bound_wherever_its_placeholder_occurs(statements: PreparedStatements) -> None:
    sql = "SELECT %(b)s::text, %(a)s::int, %(b)s::text || '100%%', NULL"

    assert statements.rows(sql, {"a": 7, "b": "é'\\%s"}) == [("é'\\%s", 7, "é'\\%s100%", None)]
    assert statements.rows(sql, {"a": -1, "b": ""}) == [("", -1, "100%", None)]
    assert statements.rows(sql, {"a": None, "b": None}) == [(None, None, None, None)]
    assert prepared_on_server() == {"SELECT $1::text, $2::int, $1::text || '100%', NULL"}


def test_least_recently_used_statement_is_removed(
    statements: PreparedStatements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "STATEMENTS_MAX", 2)

    for number in (1, 2, 1, 3):
        assert statements.rows(f"SELECT {number}", {}) == [(number,)]

    assert prepared_on_server() == {"SELECT 1", "SELECT 3"}


def test_statement_is_prepared_again_after_its_table_changed(statements: PreparedStatements) -> None:
    execute("CREATE TEMPORARY TABLE changing AS SELECT 1 AS value")
    assert statements.rows("SELECT value FROM changing", {}) == [(1,)]

    execute("ALTER TABLE changing ALTER value TYPE text")

    assert statements.rows("SELECT value FROM changing", {}) == [("1",)]


def test_statement_that_the_server_lacks_is_prepared_again(statements: PreparedStatements) -> None:
    statements.rows("SELECT 1", {})

    execute("DEALLOCATE ALL")

    assert statements.rows("SELECT 1", {}) == [(1,)]


def test_statement_prepared_by_another_client_is_used(statements: PreparedStatements) -> None:
    """Clients of a pooler share its server connections."""
    statements.rows("SELECT %(a)s::int", {"a": 1})

    assert PreparedStatements(statements.connection).rows("SELECT %(a)s::int", {"a": 2}) == [(2,)]


def test_outdated_statement_fails_only_within_a_transaction(statements: PreparedStatements) -> None:
    execute("CREATE TEMPORARY TABLE changing AS SELECT 1 AS value")
    statements.rows("SELECT value FROM changing", {})
    execute("ALTER TABLE changing ALTER value TYPE text")

    with transaction.atomic():
        execute("SELECT 1")  # the first statement begins the transaction
        assert can_run_directly(connection)
        with pytest.raises(FeatureNotSupported):
            statements.rows("SELECT value FROM changing", {})
        transaction.set_rollback(True)

    assert statements.rows("SELECT value FROM changing", {}) == [("1",)]


def test_statement_cannot_begin_a_transaction(statements: PreparedStatements) -> None:
    assert can_run_directly(connection)
    with transaction.atomic():
        assert not can_run_directly(connection)


def test_error_of_the_server_is_raised_each_time(statements: PreparedStatements) -> None:
    for _ in range(2):
        with pytest.raises(SyntaxError, match="at or near"):
            statements.rows("SELECT FROM WHERE", {})


def test_ended_connection_raises_an_operational_error(statements: PreparedStatements) -> None:
    statements.rows("SELECT 1", {})
    with psycopg.connect(connection.connection.info.dsn, password=connection.connection.info.password) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])

    with pytest.raises(psycopg.OperationalError):
        statements.rows("SELECT 1", {})
