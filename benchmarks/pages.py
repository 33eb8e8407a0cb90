"""Requests per second, response times by depth, and the buffers that a page reads."""

import json
import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.request import Request, urlopen

import psycopg

from benchmarks.dataset import MODE
from benchmarks.figures import LOAD_HEADER, Loads, load_columns, service_ratios
from benchmarks.load import Load, run_load
from benchmarks.medians import median_and_range
from benchmarks.plans import explain
from benchmarks.servers import SERVICE, Position, RunningServer
from payments.listing import Listing
from payments.models import Access
from payments.page import page_statement
from tests.support.sql import buffers_read

LIMITS = (20, 250)
DEPTHS = ("newest", "middle", "end", "ties")
STARTS = 3000
COMPARED_PAGES = 20


@dataclass(frozen=True)
class Positions:
    """Positions in a list at which pages start."""

    anywhere: list[Position]
    newest: Position
    middle: Position  # after a third of the list
    end: Position  # the last one before which a full page fits
    ties: Position  # among the payments that share one timestamp


def find_positions(database_url: str, organization_id: int) -> Positions:
    """Choose positions in the list of an organization, with a full page after them."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        payments = [
            Position(payment_id, created_at)
            for payment_id, created_at in connection.execute(
                "SELECT id, created_at::text FROM payments_payment WHERE organization_id = %s AND mode = %s "
                "ORDER BY created_at DESC, id DESC",
                [organization_id, MODE],
            )
        ]
    starts = payments[: -max(LIMITS)]
    by_time: dict[str, list[Position]] = {}
    for start in starts:
        by_time.setdefault(start.created_at, []).append(start)
    ties = max(by_time.values(), key=len)
    rng = random.Random(1)  # noqa: S311
    return Positions(
        anywhere=rng.sample(starts, min(STARTS, len(starts))),
        newest=starts[0],
        middle=starts[len(starts) // 3],
        end=starts[-1],
        ties=ties[len(ties) // 2],
    )


def compare_responses(servers: Sequence[RunningServer], positions: Positions, *, key: str) -> None:
    """Check that all servers return the same records, and that raw_wsgi returns the same bytes as the service."""
    for limit in LIMITS:
        for start in positions.anywhere[:COMPARED_PAGES]:
            bodies = {
                running.server.name: fetch(running, running.server.path(limit, start), key) for running in servers
            }
            records = {name: records_of(body) for name, body in bodies.items()}
            assert bodies["raw_wsgi"] == bodies["service"], start
            assert records["fastapi"] == records["service"], start
            # The cursor of stock_drf is a time, so its page starts elsewhere.
            assert len(records["stock_drf"]) == limit
            record = records["stock_drf"][0]
            assert json.loads(fetch(servers[0], f"/v2/payments/{record['id']}", key)) == record


def fetch(running: RunningServer, path: str, key: str) -> bytes:
    """Return the body of a response, without the base URL in its links."""
    request = Request(running.base_url + path, headers={"Authorization": f"Bearer {key}"})  # noqa: S310
    with urlopen(request) as response:  # noqa: S310  only loopback
        body: bytes = response.read()
    return body.replace(running.base_url.encode(), b"")


def records_of(body: bytes) -> list[Any]:
    page = json.loads(body)
    records: list[Any] = page["results"] if "results" in page else page["_embedded"]["payments"]
    return records


def measure_pages(servers: Sequence[RunningServer], positions: Positions, *, load: Load) -> dict[int, Loads]:
    """Measure one round: every page size on every server, with pages that start anywhere in the list."""
    return {
        limit: {
            running.server.name: run_load(
                running.base_url,
                [running.server.path(limit, start) for start in positions.anywhere],
                server=running.process,
                load=load,
            )
            for running in servers
        }
        for limit in LIMITS
    }


def measure_depth(service: RunningServer, positions: Positions, *, load: Load) -> dict[str, float]:
    """Measure one round: the median time of a page in milliseconds, by depth. One connection, so no request waits.

    The first page has no `from`. The page "newest" is the same page with `from`, so their difference is the cost of
    `from`.
    """
    paths = {
        "first": f"/v2/payments?limit={LIMITS[0]}",
        **{name: SERVICE.path(LIMITS[0], getattr(positions, name)) for name in DEPTHS},
    }
    single = replace(load, connections=1)
    return {
        name: run_load(service.base_url, [path], server=service.process, load=single).p50_ms
        for name, path in paths.items()
    }


def depth_ratios(rounds: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the time of a page by depth, divided by that of the first page: medians of the rounds."""
    return {name: round(statistics.median(times[name] / times["first"] for times in rounds), 2) for name in DEPTHS}


def ratios(rounds: Sequence[dict[int, Loads]]) -> dict[str, dict[str, Any]]:
    """Return the service's requests per second divided by those of the other servers: medians, by page size."""
    return {
        f"limit_{limit}": {
            name: round(statistics.median(service_ratios(name, [loads[limit] for loads in rounds])), 2)
            for name in rounds[0][limit]
            if name != SERVICE.name
        }
        for limit in LIMITS
    }


def table(rounds: Sequence[dict[int, Loads]]) -> Iterable[str]:
    """Yield the lines of a table with the medians of the rounds and the range of the ratios."""
    yield f"limit server          {LOAD_HEADER}  service/server"
    for limit in LIMITS:
        by_server = [loads[limit] for loads in rounds]
        for name in by_server[0]:
            columns = load_columns([loads[name] for loads in by_server])
            yield f"{limit:>5} {name:<15} {columns}  {median_and_range(service_ratios(name, by_server))}"


def buffers(positions: Positions, *, organization_id: int) -> dict[str, int]:
    """Return how many buffers the statement of a page reads, at the end of the list and among equal timestamps."""
    listing = Listing(Access(organization_id, MODE))
    result = {}
    for limit in LIMITS:
        statement = page_statement(limit, has_start=True)
        for name, start in ((f"limit_{limit}", positions.end), (f"limit_{limit}_ties", positions.ties)):
            result[name] = buffers_read(explain(statement, listing.values(start=start.payment_id)))
    return result
