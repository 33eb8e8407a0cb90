"""Pages of the service and its peers: requests per second, 304 responses, depth, and the buffers that a page reads."""

import json
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks.database import LoadedDatabase, load_payments, log, sqlite
from benchmarks.dataset import LARGE, MODE
from benchmarks.figures import load_figures, log_table, ratio_figures
from benchmarks.load import Case, LoadFailed, LoadResult, measure, ratios
from benchmarks.options import Options
from benchmarks.servers import (
    FASTAPI,
    RAW_WSGI,
    SERVICE,
    STOCK_DRF,
    Position,
    RunningServer,
    all_running,
    from_path,
    running,
)
from payments.listing.page import page_statement
from payments.listing.query import visible_payments
from payments.models import Access
from tests.support.connecting import connected_to
from tests.support.sql import buffers_read, plan_of

LIMITS = (20, 250)
DEPTHS = ("newest", "middle", "end", "ties")
STARTS = 3000
COMPARED_PAGES = 20
NOT_MODIFIED_BYTES_MAX = 2000  # a 304 has no body
EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"
SPEED = "requests_per_second"


@dataclass(frozen=True)
class Positions:
    """Positions in the large organization's list at which full pages start."""

    anywhere: list[Position]
    newest: Position
    middle: Position  # after a third of the list
    end: Position  # the last one before which a full page fits
    ties: Position  # among the payments that share one timestamp

    def paths(self, server: RunningServer, limit: int) -> list[str]:
        return [server.server.path(limit, start) for start in self.anywhere]


def measure_pages(options: Options, database: LoadedDatabase) -> dict[str, Any]:
    positions = find_positions(database.url)
    servers = (SERVICE, STOCK_DRF, FASTAPI, RAW_WSGI)
    with all_running(*servers, database=database) as started:
        service, *_, raw_wsgi = started
        compare_responses(started, positions)
        speed = compare_servers(options, started, positions)
        not_modified = measure_not_modified(options, service, raw_wsgi, positions)
        depth = measure_depth(options, service, positions)
    with sqlite() as [empty], running(SERVICE, load_payments(empty, options.rows)) as service:
        sqlite_depth = measure_depth(options, service, positions)
    return {
        **speed,
        "not_modified": not_modified,
        "depth": depth,
        "sqlite_depth": sqlite_depth,
        "buffers": measure_buffers(database.url, positions),
    }


def find_positions(database_url: str) -> Positions:
    with psycopg.connect(database_url) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        payments = [
            Position(payment_id, created_at)
            for payment_id, created_at in connection.execute(
                "SELECT id, created_at::text FROM payments_payment WHERE organization_id = %s AND mode = %s "
                "ORDER BY created_at DESC, id DESC",
                [LARGE.id, MODE],
            )
        ]
    starts = payments[: -max(LIMITS)]
    by_time: dict[str, list[Position]] = {}
    for start in starts:
        by_time.setdefault(start.created_at, []).append(start)
    ties = max(by_time.values(), key=len)
    return Positions(
        anywhere=random.Random(1).sample(starts, min(STARTS, len(starts))),  # noqa: S311
        newest=starts[0],
        middle=starts[len(starts) // 3],
        end=starts[-1],
        ties=ties[len(ties) // 2],
    )


def compare_responses(servers: Sequence[RunningServer], positions: Positions) -> None:
    """Check that all servers return the same records, and that raw_wsgi returns the same bytes as the service."""
    for limit in LIMITS:
        for start in positions.anywhere[:COMPARED_PAGES]:
            bodies = {running.server.name: fetch(running, running.server.path(limit, start)) for running in servers}
            assert bodies["raw_wsgi"] == bodies["service"], start
            assert records_of(bodies["fastapi"]) == records_of(bodies["service"]), start
            # The cursor of stock_drf is a time, so its page starts elsewhere.
            records = json.loads(bodies["stock_drf"])["results"]
            assert len(records) == limit
            assert json.loads(fetch(servers[0], f"/v2/payments/{records[0]['id']}")) == records[0]


def records_of(body: bytes) -> Any:
    return json.loads(body)["_embedded"]["payments"]


def fetch(running: RunningServer, path: str) -> bytes:
    """Return the body of a response, without the base URL in its links."""
    with running.client() as client:
        response, body = client.send(path)
    assert response.status == 200, body
    return body.replace(running.base_url.encode(), b"")


def compare_servers(
    options: Options, servers: Sequence[RunningServer], positions: Positions
) -> dict[str, dict[str, float]]:
    """Return the service's requests per second divided by those of its peers: medians, by page size."""
    log(f"Measuring pages: {options.rounds} rounds")
    cases = {
        (limit, running.server.name): Case(running, positions.paths(running, limit))
        for limit in LIMITS
        for running in servers
    }
    results = measure(cases, seconds=options.seconds, rounds=options.rounds)
    rows = [
        {"limit": limit, "server": name, **load_figures(loads), **service_over(results[limit, SERVICE.name], loads)}
        for (limit, name), loads in results.items()
    ]
    log_table(rows)
    peers = [running.server.name for running in servers[1:]]
    over = {(row["limit"], row["server"]): row["service_over"] for row in rows}
    return {f"limit_{limit}": {name: over[limit, name] for name in peers} for limit in LIMITS}


def service_over(service: Sequence[LoadResult], loads: Sequence[LoadResult]) -> dict[str, Any]:
    return ratio_figures("service_over", ratios(SPEED, service, loads))


def measure_not_modified(
    options: Options, service: RunningServer, raw_wsgi: RunningServer, positions: Positions
) -> dict[str, float]:
    """Return the service's requests per second with ETags divided by those of raw_wsgi for full pages: medians.

    :raises LoadFailed: if the service sends pages
    """
    log(f"Measuring pages that are not modified: {options.fewer_rounds} rounds")
    cases = {}
    for limit in LIMITS:
        paths = positions.paths(service, limit)
        cases[limit, SERVICE.name] = Case(service, with_etags(service, paths))
        cases[limit, RAW_WSGI.name] = Case(raw_wsgi, paths)
    results = measure(cases, seconds=options.fewer_seconds, rounds=options.fewer_rounds)
    check_not_modified(load for limit in LIMITS for load in results[limit, SERVICE.name])
    rows = [
        {"limit": limit, **service_over(results[limit, SERVICE.name], results[limit, RAW_WSGI.name])}
        for limit in LIMITS
    ]
    log_table(rows)
    return {f"limit_{row['limit']}": row["service_over"] for row in rows}


def with_etags(service: RunningServer, paths: Sequence[str]) -> list[str]:
    """Return the paths with the ETags of their pages, as load.lua reads them."""
    with service.client() as client:
        return [f"{path}\t{client.send(path)[0].headers['ETag']}" for path in paths]


def check_not_modified(results: Any) -> None:
    if max(load.response_bytes for load in results) > NOT_MODIFIED_BYTES_MAX:
        raise LoadFailed("The service sent pages, although the client knew their ETags.")


def measure_depth(options: Options, service: RunningServer, positions: Positions) -> dict[str, float]:
    """Return the median time of a page by depth over the first page. With one connection, no request waits.

    The first page has no `from`. The page "newest" is the same page with `from`, so their difference is the cost of
    `from`.
    """
    log(f"Measuring depth: {options.rounds} rounds")
    paths = {
        "first": f"/v2/payments?limit={LIMITS[0]}",
        **{name: from_path(LIMITS[0], getattr(positions, name)) for name in DEPTHS},
    }
    cases = {name: Case(service, [path], connections=1) for name, path in paths.items()}
    results = measure(cases, seconds=options.seconds, rounds=options.rounds)
    return depth_ratios(results)


def depth_ratios(results: Mapping[str, Sequence[LoadResult]]) -> dict[str, float]:
    return {name: round(statistics.median(ratios("p50_ms", results[name], results["first"])), 2) for name in DEPTHS}


def measure_buffers(database_url: str, positions: Positions) -> dict[str, int]:
    """Return how many buffers the statement of a page reads, at the end of the list and among equal timestamps."""
    access = Access(LARGE.id, MODE)._asdict()
    buffers = {}
    with connected_to(database_url), psycopg.connect(database_url, cursor_factory=psycopg.ClientCursor) as connection:
        for limit in LIMITS:
            sql = page_statement(visible_payments(), visible_payments(), limit, has_start=True).sql
            for name, start in ((f"limit_{limit}", positions.end), (f"limit_{limit}_ties", positions.ties)):
                rows = connection.execute(f"{EXPLAIN} {sql}", {**access, "start": start.payment_id}).fetchall()
                buffers[name] = buffers_read(plan_of(rows))
    return buffers
