"""SQL that a test runs on the connection of the ORM."""

from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext


def execute(statement: str) -> list[Any]:
    """Return the rows of a statement; none if it returns no rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def fetch_value(statement: str) -> Any:
    """Return the only value of a statement."""
    [(value,)] = execute(statement)
    return value


def tables_read(queries: CaptureQueriesContext) -> list[str]:
    """Return the first table that each query reads."""
    return [query["sql"].split('FROM "')[1].split('"')[0] for query in queries]


def explain(statement: str) -> str:
    """Return the query plan of a statement."""
    keyword = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN (COSTS OFF)"
    return "\n".join(str(row[-1]) for row in execute(f"{keyword} {statement}"))
