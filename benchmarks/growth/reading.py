"""What a request reads, and how long it takes, by how the table is kept: by the service's own statements."""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection
from psycopg import ClientCursor

from benchmarks import filters
from benchmarks.dataset import LARGE
from benchmarks.growth.dataset import SPAN, UNTIL
from benchmarks.growth.tables import TABLE, TABLES, Table, execute, used
from benchmarks.pages import LIMITS, MODE, read_by
from payments.api.parameters import parse_list_parameters
from payments.database.statements import Statement, cached_runner, prepared_statements
from payments.listing import Listing, payment_statement
from payments.models import Access
from payments.page import page_statement
from payments.routing import fetch_rows

ACCESS = Access(LARGE.id, MODE)
TIMES = 10
PLANNED_TIMES = 5
ANYWHERE = 400


class Asked(NamedTuple):
    """A statement of the service's, and what it is run with."""

    name: str
    statement: Statement[Any]
    listing: Listing
    start: str | None = None

    def rows(self) -> Any:
        return fetch_rows(self.listing, self.statement, start=self.start)

    def explained(self) -> Any:
        [(document,)] = Explained(self.statement).rows(self.listing.values(start=self.start))
        return document


class Explained:
    """A statement's plan, as it was run: the one that is kept where the statement is prepared."""

    def __init__(self, statement: Statement[Any]) -> None:
        self.statement = statement

    def rows(self, values: Mapping[str, Any]) -> Any:
        if self.statement.is_planned_each_time:
            return filters.Explained(self.statement).rows(values)
        prepared = cached_runner(connection, prepared_statements).find_or_prepare(self.statement.sql)
        given = ", ".join(["%s"] * len(prepared.placeholders))
        return (
            ClientCursor(connection.connection)
            .execute(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {prepared.name.decode()} ({given})",
                [str(values[name]) for name in prepared.placeholders],
            )
            .fetchall()
        )


def measure_reading(*, rounds: int) -> Iterator[str]:
    """Yield the lines of two tables: buffers and milliseconds of each statement; what it takes to plan one."""
    asked = list(statements())
    buffers = {table.name: buffers_of(table, asked) for table in TABLES}
    found: dict[str, list[list[float]]] = {table.name: [[] for _ in asked] for table in TABLES}
    for _ in range(rounds):
        for table in TABLES:
            with used(table):
                for each, times in zip(asked, found[table.name], strict=True):
                    each.rows()  # planned
                    times += [timed(each) for _ in range(TIMES)]
    yield f"| asked for | {' | '.join(f'{table.name}: buffers | ms' for table in TABLES)} |"
    yield "|---|" + "---|---|" * len(TABLES)
    for number, each in enumerate(asked):
        cells = [
            cell
            for name, times in found.items()
            for cell in (str(buffers[name][number]), f"{statistics.median(times[number]):.2f}")
        ]
        yield f"| {each.name} | {' | '.join(cells)} |"
    yield ""
    yield "| a page is planned once for a connection | ms | the plan, kB |"
    yield "|---|---|---|"
    for table in TABLES:
        milliseconds, held = planned(table)
        yield f"| {table.name} | {milliseconds:.1f} | {held:.0f} |"


def statements() -> Iterator[Asked]:
    """Yield what is asked for: pages of both sizes at any depth, one payment, and filters."""
    everything = Listing(ACCESS)
    places = find_places()
    for limit in LIMITS:
        yield Asked(f"{limit} a page, the first", page_statement(limit, has_start=False), everything)
        for name, place in places.items():
            statement = page_statement(limit, has_start=True)
            yield Asked(f"{limit} a page, {name}", statement, everything, place)
    middle = places["in the middle"]
    yield Asked("one payment", payment_statement(), everything, middle)
    [(customer, order, day)] = execute(
        f"SELECT customer_id, metadata::json->>'order', created_at::date FROM {TABLE} "  # noqa: S608
        "WHERE organization_id = %s AND mode = %s AND customer_id <> '' AND metadata <> '{}' AND id <= %s "
        "ORDER BY id DESC LIMIT 1",
        [LARGE.id, MODE, middle],
    )
    for query in (
        "status=failed",
        "status=pending",
        "method=directdebit",
        "customerId={customer}",
        "metadata[order]={order}",
        "createdAt[gte]={day}&createdAt[lt]={day}T23:59:59",
    ):
        asked = query.format(customer=customer, order=order, day=day)
        selection = parse_list_parameters(asked, is_known=lambda _: True).selection
        listing = Listing(ACCESS, selection)
        for name, start in (("the first", None), ("from the middle", middle)):
            statement = page_statement(LIMITS[0], start is not None, selection.order, listing.shape)
            yield Asked(f"`{query.partition('={')[0]}`, {name}", statement, listing, start)


def find_places() -> dict[str, str]:
    """Return payments of the larger organization, by where in its list they are."""
    return {
        "in the middle": at(UNTIL - SPAN / 3),
        "at the far end": at(UNTIL - SPAN, skipped=-max(LIMITS)),
        "within payments of one instant": at(busiest(UNTIL - SPAN / 2), skipped=max(LIMITS)),
    }


def at(moment: Any, *, skipped: int = 0) -> str:
    """Return the payment of a moment or the next one; or one some places further into the list, or before it."""
    comparison, order = ("<=", "DESC") if skipped >= 0 else (">=", "ASC")
    [(found,)] = execute(
        f"SELECT id FROM {TABLE} WHERE organization_id = %s AND mode = %s AND created_at {comparison} %s "  # noqa: S608
        f"ORDER BY created_at {order}, id {order} OFFSET %s LIMIT 1",
        [LARGE.id, MODE, moment, abs(skipped)],
    )
    return str(found)


def busiest(moment: Any) -> Any:
    """Return the instant of most payments within a day of one."""
    [(found,)] = execute(
        f"SELECT created_at FROM {TABLE} WHERE organization_id = %s AND mode = %s "  # noqa: S608
        "AND created_at BETWEEN %s - interval '1 day' AND %s + interval '1 day' "
        "GROUP BY created_at ORDER BY count(*) DESC LIMIT 1",
        [LARGE.id, MODE, moment, moment],
    )
    return found


def buffers_of(table: Table, asked: Sequence[Asked]) -> list[int]:
    with used(table):
        return [read_by([(each.explained(),)]) for each in asked]


def timed(asked: Asked) -> float:
    began = time.perf_counter()
    asked.rows()
    return (time.perf_counter() - began) * 1000


def measure_anywhere() -> Iterator[str]:
    """Yield the lines of a table: pages that begin anywhere, which nobody has asked for lately."""
    [(share,)] = execute("SELECT 100 * %s / reltuples FROM pg_class WHERE oid = %s::regclass", [ANYWHERE, TABLE])
    starts = execute(
        f"SELECT id FROM {TABLE} TABLESAMPLE BERNOULLI ({share:f}) WHERE organization_id = {LARGE.id}"  # noqa: S608
    )
    yield "| pages that begin anywhere | buffers | of them not in the server's own |"
    yield "|---|---|---|"
    for limit in LIMITS:
        statement = page_statement(limit, has_start=True)
        plans = [Asked("", statement, Listing(ACCESS), start).explained()[0]["Plan"] for (start,) in starts]
        hit, read = (statistics.mean(plan[f"Shared {kind} Blocks"] for plan in plans) for kind in ("Hit", "Read"))
        yield f"| {limit} a page | {hit + read:.1f} | {read:.1f} |"
        starts.reverse()


def planned(table: Table) -> tuple[float, float]:
    """Return what it takes to plan a page once for a connection, in ms, and what the plan then holds there, in kB."""
    connection.close()
    page = Asked("a page of 20", page_statement(LIMITS[0], has_start=True), Listing(ACCESS), "")
    times = []
    with used(table):
        for _ in range(PLANNED_TIMES):
            execute("DISCARD PLANS")
            times.append(page.explained()[0]["Planning Time"])
        [(held,)] = execute("SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name = 'CachedPlan'")
    return min(times), held / 1024
