"""What BRIN finds, and how large it is: the payments of a day, whoever's they are."""

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.growth.dataset import SPAN, UNTIL
from benchmarks.growth.tables import TABLE, execute
from benchmarks.pages import read_by

COLUMNS = ("created_at", "paid_at")
DAY = UNTIL - SPAN / 3


def measure_ranges() -> Iterator[str]:
    """Yield the lines of a table."""
    yield "| a day's payments, by | index, bytes | made in, s | buffers | read by |"
    yield "|---|---|---|---|---|"
    execute("SET max_parallel_workers_per_gather TO 0")
    for column in COLUMNS:
        yield f"| `{column}` | none | | {read(column)} |"
        began = time.perf_counter()
        execute(f"CREATE INDEX tried_range ON {TABLE} USING brin ({column})")
        seconds = time.perf_counter() - began
        [(length,)] = execute("SELECT pg_relation_size('tried_range')")
        yield f"| `{column}` | {length:,} | {seconds:.1f} | {read(column)} |"
        execute("DROP INDEX tried_range")


def read(column: str) -> str:
    """Return how many buffers it takes to add up a day's payments, and what leads to them."""
    [row] = execute(
        f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT count(*), sum(amount) FROM {TABLE} "  # noqa: S608
        f"WHERE {column} >= %s::timestamptz AND {column} < %s::timestamptz + interval '1 day'",
        [DAY, DAY],
    )
    return f"{read_by([row]):,} | {lowest(row[0][0]['Plan'])}"


def lowest(plan: dict[str, Any]) -> str:
    """Return the node that a plan's rows come from first."""
    while "Plans" in plan:
        plan = plan["Plans"][0]
    return f"{plan['Node Type']} {plan.get('Index Name', '')}".strip()
