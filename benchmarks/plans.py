"""Query plans, and the buffers that they read."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.db import connection
from psycopg import ClientCursor

from payments.database.runners import prepared_statements
from payments.database.statements import Statement
from tests.support.sql import plan_of

EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"
EXPLAIN_ONLY = "EXPLAIN (FORMAT JSON)"  # does not run the statement


def explain(statement: Statement[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Run a statement with EXPLAIN ANALYZE, planned with its values, and return its plan."""
    connection.ensure_connection()
    rows = ClientCursor(connection.connection).execute(f"{EXPLAIN} {statement.sql}", values).fetchall()
    return plan_of(rows)


def explain_prepared(statement: Statement[Any], values: Mapping[str, Any], *, command: str = EXPLAIN) -> dict[str, Any]:
    """Return the plan of a statement as the service runs it: prepared, so the plan is the cached one."""
    connection.ensure_connection()
    prepared = prepared_statements(connection).find_or_prepare(statement.sql)
    parameters = ", ".join(["%s"] * len(prepared.placeholders))
    cursor = ClientCursor(connection.connection)
    cursor.execute(
        f"{command} EXECUTE {prepared.name.decode()} ({parameters})",
        [str(values[name]) for name in prepared.placeholders],
    )
    return plan_of(cursor.fetchall())


def explain_on_sqlite(statement: Statement[Any], values: Mapping[str, Any]) -> list[str]:
    """Return the lines of a statement's plan. SQLite does not run the statement for that."""
    cursor = connection.cursor().cursor
    return [line for *_, line in cursor.execute(f"EXPLAIN QUERY PLAN {statement.sql}", values).fetchall()]


def nodes(node: dict[str, Any], depth: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield a node of a plan and all nodes below it, with their depths."""
    yield depth, node
    for child in node.get("Plans", ()):
        yield from nodes(child, depth + 1)


def outline(plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each node of a plan: its type, the index or table that it reads, its rows and conditions."""
    for depth, node in nodes(plan["Plan"]):
        relation = node.get("Index Name") or node.get("Relation Name") or ""
        conditions = " ".join(node[name] for name in ("Index Cond", "Filter", "Join Filter") if name in node)
        yield f"{'  ' * depth}{node['Node Type']} {relation} (rows={node['Plan Rows']}) {conditions}".rstrip()
