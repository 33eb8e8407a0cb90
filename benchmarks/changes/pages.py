"""Plans, buffers and milliseconds of pages of the feed."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from django.db import OperationalError
from psycopg.errors import QueryCanceled

from benchmarks.changes.positions import BEGINNING, BEGINNING_WITHOUT_PAYMENTS, find_end, find_last_page, find_middle
from benchmarks.database import log
from benchmarks.growth.tables import execute
from benchmarks.pages import LIMITS
from benchmarks.plans import EXPLAIN_ONLY, explain_prepared, nodes, outline
from payments.changes import changes_query
from payments.database.postgresql.base import REQUEST_SETTINGS
from payments.database.postgresql.planning import session_settings
from payments.database.round_trips import Query
from payments.listing import Listing
from payments.tokens import Position
from tests.support.sql import buffers_read

RUNS = 5
HEADER = ("| changes | page | limit | buffers | ms | plan |", "|---|---|---|---|---|---|")

# A page looks up unchanged payments in their order, and then the payments of one change after the other.
CONDITIONS = {"payment_unchanged": "mode", "payment_change": "change_id"}  # the last column that each index looks up
PAYMENTS = "payments_payment"

FindPosition: TypeAlias = Callable[[int], Position]  # by the limit of the page

AT_BEGINNING = "at the beginning"
POSITIONS: Mapping[str, FindPosition] = {
    AT_BEGINNING: lambda _: BEGINNING,
    "in the middle": lambda _: find_middle(),
    "the last one": find_last_page,
    "after the end": lambda _: find_end(),
    "of an organization without payments": lambda _: BEGINNING_WITHOUT_PAYMENTS,
}


def measure_pages(changes: str) -> Iterator[str]:
    """Yield the rows of pages at all positions, in the database that the ORM is connected to."""
    for name, find in POSITIONS.items():
        yield from measure_page(changes, name, find)


def measure_beginning(changes: str) -> Iterator[str]:
    """Yield the rows of the first pages."""
    yield from measure_page(changes, AT_BEGINNING, POSITIONS[AT_BEGINNING])


def measure_page(changes: str, name: str, find: FindPosition) -> Iterator[str]:
    """Yield the rows of pages at a position, one for each limit."""
    for limit in LIMITS:
        page = f"{changes} | {name} | {limit}"
        position = find(limit)
        query = changes_query(Listing(position.access), position, limit=limit)
        execute("DISCARD PLANS")  # plan with the current statistics
        with session_settings(REQUEST_SETTINGS):
            yield f"| {page} | {cost_cells(query)} | {plan_cell(query, page)} |"


def cost_cells(query: Query) -> str:
    """Return the buffers and the milliseconds of a query."""
    try:
        buffers = read_buffers(query)
        return f"{buffers:,} | {statistics.median(run_ms(query) for _ in range(RUNS)):.2f}"
    except (OperationalError, QueryCanceled):  # of the ORM, and of EXPLAIN
        return f"| more than {REQUEST_SETTINGS['statement_timeout']}"


def read_buffers(query: Query) -> int:
    return buffers_read(explain_prepared(query.statement, query.values))


def run_ms(query: Query) -> float:
    began = time.perf_counter()
    query.rows()
    return (time.perf_counter() - began) * 1000


def plan_cell(query: Query, page: str) -> str:
    """Return how the plan of a page differs from the expected one. Log the plan if it does."""
    plan = explain_prepared(query.statement, query.values, command=EXPLAIN_ONLY)
    differences = {text for _, node in nodes(plan["Plan"]) if (text := difference(node))}
    if not differences:
        return "as expected"
    log("\n".join([f"Unexpected plan: {page}", *outline(plan)]))
    return f"**{', '.join(sorted(differences))}**"


def difference(node: Mapping[str, Any]) -> str | None:
    """Return what a node reads if it reads more payments than a page needs. Incremental Sort ends early."""
    if node["Node Type"] == "Sort":
        return "Sort"
    if node["Node Type"] == "Seq Scan" and node["Relation Name"] == PAYMENTS:
        return "Seq Scan"
    index = node.get("Index Name", "")
    if not index.startswith(("payment_", PAYMENTS)) or is_lookup(index, node.get("Index Cond", "")):
        return None
    return f"{index} without {CONDITIONS[index]}" if index in CONDITIONS else index


def is_lookup(index: str, condition: str) -> bool:
    return index in CONDITIONS and CONDITIONS[index] in condition
