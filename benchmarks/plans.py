"""Query plans, and the buffers that they read."""

from collections.abc import Mapping
from typing import Any

from django.db import connection
from psycopg import ClientCursor

from payments.database.runners import prepared_statements
from payments.database.statements import Statement
from tests.support.sql import plan_of

EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"


def explain(statement: Statement[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Run a statement with EXPLAIN ANALYZE, planned with its values, and return its plan."""
    connection.ensure_connection()
    rows = ClientCursor(connection.connection).execute(f"{EXPLAIN} {statement.sql}", values).fetchall()
    return plan_of(rows)


def explain_prepared(statement: Statement[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Run a statement with EXPLAIN ANALYZE as the service runs it, prepared, and return its plan: the cached one."""
    connection.ensure_connection()
    prepared = prepared_statements(connection).find_or_prepare(statement.sql)
    parameters = ", ".join(["%s"] * len(prepared.placeholders))
    cursor = ClientCursor(connection.connection)
    cursor.execute(
        f"{EXPLAIN} EXECUTE {prepared.name.decode()} ({parameters})",
        [str(values[name]) for name in prepared.placeholders],
    )
    return plan_of(cursor.fetchall())


def explain_on_sqlite(statement: Statement[Any], values: Mapping[str, Any]) -> list[str]:
    """Return the lines of a statement's plan. SQLite does not run the statement for that."""
    cursor = connection.cursor().cursor
    return [line for *_, line in cursor.execute(f"EXPLAIN QUERY PLAN {statement.sql}", values).fetchall()]
