"""SQL that a test runs on the connection of the ORM."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker


def execute(statement: str) -> list[Any]:
    """Return the rows of a statement; none if it returns no rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def fetch_value(statement: str) -> Any:
    """Return the only value of a statement."""
    [(value,)] = execute(statement)
    return value


# What a request reads.
KEY, STATE, PAYMENT = "payments_apikey", "payments_accessstate", "payments_payment"


def tables_read(queries: CaptureQueriesContext) -> list[set[str]]:
    """Return the tables that each query reads."""
    return [set(re.findall(r'(?:FROM|JOIN) "(\w+)"', query["sql"])) for query in queries]


def key_and_content() -> list[set[str]]:
    """Return the tables of each query for a key and content: one query on PostgreSQL, two on SQLite and on Citus."""
    return [{KEY, STATE, PAYMENT}] if os.environ["TEST_DATABASE"] == "postgresql" else [{KEY}, {STATE, PAYMENT}]


def key_and_revision() -> list[set[str]]:
    """Return the tables of each query for a key and the revision of its payments: one query, but two on Citus."""
    return [{KEY}, {STATE}] if os.environ["TEST_DATABASE"] == "citus" else [{KEY, STATE}]


def explain(statement: str) -> str:
    """Return the query plan of a statement."""
    keyword = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN (COSTS OFF)"
    return "\n".join(str(row[-1]) for row in execute(f"{keyword} {statement}"))


def plan_of(rows: Any) -> dict[str, Any]:
    """Return the root node of a plan from the only row of EXPLAIN."""
    ((document,),) = rows
    root: dict[str, Any] = (document if isinstance(document, list) else json.loads(document))[0]
    return root


def buffers_read(plan: Mapping[str, Any]) -> int:
    """Return the number of buffers that a plan has read, from PostgreSQL's cache or from files."""
    node = plan["Plan"]
    return int(node["Shared Hit Blocks"] + node["Shared Read Blocks"])


def rows_read(plan: Mapping[str, Any], table: str) -> int:
    """Return how many rows of a table a plan has read, whether or not they met its conditions."""
    return rows_of_node(plan["Plan"], table)


def rows_of_node(node: Mapping[str, Any], table: str) -> int:
    rows = sum(rows_of_node(child, table) for child in node.get("Plans", []))
    if node.get("Relation Name") == table:
        rows += round((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
    return rows


@contextmanager
def rolled_back(blocker: DjangoDbBlocker) -> Iterator[None]:
    """Allow the database, and undo the writes of the block at its end."""
    with blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


def update_statistics() -> None:
    """Update the statistics of the database, without rows of other tests."""
    if connection.vendor == "postgresql":
        execute("SET CONSTRAINTS ALL IMMEDIATE")
        execute("REINDEX TABLE payments_payment")
    execute("ANALYZE")
