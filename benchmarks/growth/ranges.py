"""BRIN indexes: their size, and the buffers that reading one day's payments of all organizations needs."""

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.growth.dataset import SPAN, UNTIL
from benchmarks.growth.tables import TABLE, execute
from tests.support.sql import buffers_read, plan_of

COLUMNS = ("created_at", "paid_at")
DAY = UNTIL - SPAN / 3


def measure_ranges() -> Iterator[str]:
    """Yield the lines of a table."""
    yield "| one day's payments, by | index, bytes | created in, s | buffers | scan |"
    yield "|---|---|---|---|---|"
    execute("SET max_parallel_workers_per_gather TO 0")
    for column in COLUMNS:
        yield f"| `{column}` | none | | {read_day(column)} |"
        began = time.perf_counter()
        execute(f"CREATE INDEX trial_range ON {TABLE} USING brin ({column})")
        seconds = time.perf_counter() - began
        [(length,)] = execute("SELECT pg_relation_size('trial_range')")
        yield f"| `{column}` | {length:,} | {seconds:.1f} | {read_day(column)} |"
        execute("DROP INDEX trial_range")


def read_day(column: str) -> str:
    """Return the buffers that adding a day's payments reads, and the first scan of the plan."""
    rows = execute(
        f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*), sum(amount) FROM {TABLE} "  # noqa: S608
        f"WHERE {column} >= %s::timestamptz AND {column} < %s::timestamptz + interval '1 day'",
        [DAY, DAY],
    )
    plan = plan_of(rows)
    return f"{buffers_read(plan):,} | {first_scan(plan['Plan'])}"


def first_scan(node: dict[str, Any]) -> str:
    """Return the name of a plan's first leaf."""
    while "Plans" in node:
        node = node["Plans"][0]
    return f"{node['Node Type']} {node.get('Index Name', '')}".strip()
