"""SQL that a test runs on the connection of the ORM."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker


def execute(statement: str) -> list[Any]:
    """Return the rows of a statement; none if it returns no rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Lock a table against writers, by another connection. On SQLite, lock all tables."""
    with closing(connection.copy()) as other, other.cursor() as cursor:
        other.set_autocommit(False)
        cursor.execute("BEGIN IMMEDIATE" if other.vendor == "sqlite" else f"LOCK TABLE {table} IN EXCLUSIVE MODE")
        yield
        other.rollback()


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


class Reads(NamedTuple):
    """What a block has read in the tables of the application and their indexes."""

    buffers: int
    indexes: dict[str, int]  # how often each was searched
    sequential: dict[str, int]  # rows of the tables that were read without an index


def reads_of(run: Callable[[], object]) -> Reads:
    """Run a function, and return what PostgreSQL has read for it."""
    before = counts_of_reads()
    run()
    buffers, indexes, sequential = (
        {name: number - earlier.get(name, 0) for name, number in counts.items() if number != earlier.get(name)}
        for earlier, counts in zip(before, counts_of_reads(), strict=True)
    )
    return Reads(sum(buffers.values()), indexes, sequential)


def counts_of_reads() -> list[dict[str, int]]:
    execute("SELECT pg_stat_force_next_flush()")
    return [dict(execute(counts)) for counts in COUNTS]


COUNTS = (
    """
        SELECT relname, heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)
        FROM pg_statio_user_tables
    """,
    "SELECT indexrelname, idx_scan FROM pg_stat_user_indexes",
    "SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'public'",
)
