"""Cost of reading by variant of the table: buffers and milliseconds of the service's own statements."""

import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from benchmarks.dataset import LARGE, MODE
from benchmarks.growth.dataset import SPAN, UNTIL
from benchmarks.growth.tables import TABLE, TABLES, Table, execute, selected
from benchmarks.pages import LIMITS
from benchmarks.plans import explain, explain_prepared
from payments.api.parameters import parse_list_parameters
from payments.database import round_trips
from payments.database.statements import Statement
from payments.listing import Listing, payment_statement
from payments.models import Access
from payments.page import page_statement
from payments.routing import fetch_rows
from payments.rows import Row
from tests.support.sql import buffers_read

ACCESS = Access(LARGE.id, MODE)
RUNS = 10
PLANNING_RUNS = 5
STARTS = 400


class Query(NamedTuple):
    """A statement of the service, with its values."""

    name: str
    statement: Statement[Row]
    listing: Listing
    start: str | None = None

    def run(self) -> list[Row]:
        return fetch_rows(self.listing, round_trips.Query(self.statement, self.listing.values(start=self.start))).rows

    def plan(self) -> dict[str, Any]:
        """Run the statement with EXPLAIN ANALYZE, and return its plan: the cached one, if the statement is prepared."""
        values = self.listing.values(start=self.start)
        function = explain if self.statement.is_planned_each_time else explain_prepared
        return function(self.statement, values)


def measure_reading(*, rounds: int) -> Iterator[str]:
    """Yield the lines of two tables: buffers and milliseconds of each statement, and the cost of planning a page."""
    queries = list(list_queries())
    buffers = {table.name: buffers_of(table, queries) for table in TABLES}
    times_of: dict[str, list[list[float]]] = {table.name: [[] for _ in queries] for table in TABLES}
    for _ in range(rounds):
        for table in TABLES:
            with selected(table):
                for query, times in zip(queries, times_of[table.name], strict=True):
                    query.run()  # prepares the statement
                    times += [run_milliseconds(query) for _ in range(RUNS)]
    yield f"| statement | {' | '.join(f'{table.name}: buffers | ms' for table in TABLES)} |"
    yield "|---|" + "---|---|" * len(TABLES)
    for number, query in enumerate(queries):
        cells = [
            f"{buffers[name][number]} | {statistics.median(times[number]):.2f}" for name, times in times_of.items()
        ]
        yield f"| {query.name} | {' | '.join(cells)} |"
    yield ""
    yield "| planning a page, once per connection | ms | size of the plan, kB |"
    yield "|---|---|---|"
    for table in TABLES:
        milliseconds, size = planning_cost(table)
        yield f"| {table.name} | {milliseconds:.1f} | {size:.0f} |"


def list_queries() -> Iterator[Query]:
    """Yield pages of both sizes at any depth, one payment, and filtered pages."""
    everything = Listing(ACCESS)
    starts = find_starts()
    for limit in LIMITS:
        yield Query(f"page of {limit}, the first", page_statement(limit, has_start=False), everything)
        for name, start in starts.items():
            yield Query(f"page of {limit}, {name}", page_statement(limit, has_start=True), everything, start)
    middle = starts["in the middle"]
    yield Query("one payment", payment_statement(), everything, middle)
    [(customer, order, day)] = execute(
        f"SELECT customer_id, metadata::json->>'order', created_at::date FROM {TABLE} "  # noqa: S608
        "WHERE organization_id = %s AND mode = %s AND customer_id <> '' AND metadata <> '{}' AND id <= %s "
        "ORDER BY id DESC LIMIT 1",
        [LARGE.id, MODE, middle],
    )
    for template in (
        "status=failed",
        "status=pending",
        "method=directdebit",
        "customerId={customer}",
        "metadata[order]={order}",
        "createdAt[gte]={day}&createdAt[lt]={day}T23:59:59",
    ):
        query = template.format(customer=customer, order=order, day=day)
        selection = parse_list_parameters(query).selection
        listing = Listing(ACCESS, selection)
        for name, first in (("the first", None), ("from the middle", middle)):
            statement = page_statement(LIMITS[0], first is not None, selection.order, listing.shape)
            yield Query(f"`{template.partition('={')[0]}`, {name}", statement, listing, first)


def find_starts() -> dict[str, str]:
    """Return payments of the large organization by their position in the list."""
    return {
        "in the middle": payment_at(UNTIL - SPAN / 3),
        "at the far end": payment_at(UNTIL - SPAN, offset=-max(LIMITS)),
        "among equal timestamps": payment_at(most_frequent_time(UNTIL - SPAN / 2), offset=max(LIMITS)),
    }


def payment_at(created_at: datetime, *, offset: int = 0) -> str:
    """Return the ID of the payment that was created at a time or before it, or of one at an offset in the list.

    A negative offset counts backwards from the payment that was created at the time or after it.
    """
    comparison, order = ("<=", "DESC") if offset >= 0 else (">=", "ASC")
    [(payment_id,)] = execute(
        f"SELECT id FROM {TABLE} WHERE organization_id = %s AND mode = %s AND created_at {comparison} %s "  # noqa: S608
        f"ORDER BY created_at {order}, id {order} OFFSET %s LIMIT 1",
        [LARGE.id, MODE, created_at, abs(offset)],
    )
    return str(payment_id)


def most_frequent_time(time: datetime) -> datetime:
    """Return the timestamp that most payments share, within a day of a time."""
    [(created_at,)] = execute(
        f"SELECT created_at FROM {TABLE} WHERE organization_id = %s AND mode = %s "  # noqa: S608
        "AND created_at BETWEEN %s - interval '1 day' AND %s + interval '1 day' "
        "GROUP BY created_at ORDER BY count(*) DESC LIMIT 1",
        [LARGE.id, MODE, time, time],
    )
    result: datetime = created_at
    return result


def buffers_of(table: Table, queries: Sequence[Query]) -> list[int]:
    with selected(table):
        return [buffers_read(query.plan()) for query in queries]


def run_milliseconds(query: Query) -> float:
    began = time.perf_counter()
    query.run()
    return (time.perf_counter() - began) * 1000


def measure_anywhere() -> Iterator[str]:
    """Yield the lines of a table: pages that start anywhere in the list, so that the cache may lack them."""
    [(percentage,)] = execute("SELECT 100 * %s / reltuples FROM pg_class WHERE oid = %s::regclass", [STARTS, TABLE])
    starts = execute(
        f"SELECT id FROM {TABLE} TABLESAMPLE BERNOULLI ({percentage:f}) WHERE organization_id = {LARGE.id}"  # noqa: S608
    )
    yield "| pages that start anywhere | buffers | of these, not in PostgreSQL's cache |"
    yield "|---|---|---|"
    for limit in LIMITS:
        statement = page_statement(limit, has_start=True)
        plans = [Query("", statement, Listing(ACCESS), start).plan()["Plan"] for (start,) in starts]
        hit, read = (statistics.mean(plan[f"Shared {kind} Blocks"] for plan in plans) for kind in ("Hit", "Read"))
        yield f"| page of {limit} | {hit + read:.1f} | {read:.1f} |"
        starts.reverse()


def planning_cost(table: Table) -> tuple[float, float]:
    """Return the milliseconds that planning a page takes, and the size of the cached plan in kB."""
    connection.close()
    page = Query("", page_statement(LIMITS[0], has_start=True), Listing(ACCESS), "")
    times = []
    with selected(table):
        for _ in range(PLANNING_RUNS):
            execute("DISCARD PLANS")
            times.append(page.plan()["Planning Time"])
        [(size,)] = execute("SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'CachedPlan'")
    return min(times), size / 1024
