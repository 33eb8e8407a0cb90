"""Requests a second, at any depth; and what a page reads in the database."""

import json
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.request import Request, urlopen

import psycopg

from benchmarks.load import Load, Measured, put_under_load
from benchmarks.medians import median, ranged
from benchmarks.servers import SERVICE, Running, Start
from payments.listing import Listing
from payments.models import Access
from payments.page import page_statement

LIMITS = (20, 250)
DEPTHS = ("newest", "middle", "end", "ties")
STARTS = 3000
MODE = "live"


@dataclass(frozen=True)
class Places:
    """Where pages begin: anywhere; at the newest payment, a third of the way, at the end, and within the tie."""

    anywhere: list[Start]
    newest: Start
    middle: Start
    end: Start
    ties: Start


def find_places(database_url: str, organization_id: int) -> Places:
    """Choose the places of one organization's list, each with a full page behind it."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        ordered = [
            Start(payment_id, created_at)
            for payment_id, created_at in connection.execute(
                "SELECT id, created_at::text FROM payments_payment WHERE organization_id = %s AND mode = %s "
                "ORDER BY created_at DESC, id DESC",
                [organization_id, MODE],
            )
        ]
    whole = ordered[: -max(LIMITS)]
    by_moment: dict[str, list[Start]] = {}
    for start in whole:
        by_moment.setdefault(start.created_at, []).append(start)
    tied = max(by_moment.values(), key=len)
    chance = random.Random(1)  # noqa: S311
    return Places(
        anywhere=chance.sample(whole, min(STARTS, len(whole))),
        newest=whole[0],
        middle=whole[len(whole) // 3],
        end=whole[-1],
        ties=tied[len(tied) // 2],
    )


def compare_answers(servers: Sequence[Running], places: Places, *, key: str) -> None:
    """Make sure that all give out the same: the limit to the byte, the others record by record."""
    for limit in LIMITS:
        for start in places.anywhere[:20]:
            answers = {
                running.server.name: answer(running, running.server.path(limit, start), key=key) for running in servers
            }
            records = {name: records_of(found) for name, found in answers.items()}
            assert answers["raw_wsgi"] == answers["service"], start
            assert records["fastapi"] == records["service"], start
            # Its cursor is a moment, so its page is another one; of as many records.
            assert len(records["stock_drf"]) == limit
            stock = records["stock_drf"][0]
            assert json.loads(answer(servers[0], f"/v2/payments/{stock['id']}", key=key)) == stock


def answer(running: Running, path: str, *, key: str) -> bytes:
    asked = Request(running.base_url + path, headers={"Authorization": f"Bearer {key}"})  # noqa: S310
    with urlopen(asked) as response:  # noqa: S310  loopback alone
        body: bytes = response.read()
    return body.replace(running.base_url.encode(), b"")


def records_of(body: bytes) -> list[Any]:
    page = json.loads(body)
    found: list[Any] = page["results"] if "results" in page else page["_embedded"]["payments"]
    return found


def measure_pages(servers: Sequence[Running], places: Places, *, load: Load) -> dict[int, dict[str, Measured]]:
    """Measure one round: each server in turn, at each page size, anywhere in the list."""
    return {
        limit: {
            running.server.name: put_under_load(
                running.base_url,
                [running.server.path(limit, start) for start in places.anywhere],
                server=running.process,
                load=load,
            )
            for running in servers
        }
        for limit in LIMITS
    }


def measure_depth(service: Running, places: Places, *, load: Load) -> dict[str, float]:
    """Measure one round: the median time of a page, in ms, by where in the list it is. One connection: no queue.

    The first page is asked for without a start. So whatever a start costs as such is in the others' times, which
    the page from the newest payment shows: it is the same as the first.
    """
    paths = {
        "first": f"/v2/payments?limit={LIMITS[0]}",
        **{name: SERVICE.path(LIMITS[0], getattr(places, name)) for name in DEPTHS},
    }
    return {
        name: put_under_load(
            service.base_url,
            [path],
            server=service.process,
            load=replace(load, connections=1),
        ).p50_ms
        for name, path in paths.items()
    }


def depth_ratios(rounds: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the median time of a page by its place, over the first page's: the median of the rounds."""
    return {name: round(statistics.median(found[name] / found["first"] for found in rounds), 2) for name in DEPTHS}


def ratios(rounds: Sequence[dict[int, dict[str, Measured]]]) -> dict[str, dict[str, Any]]:
    """Return, by page size, the service's requests a second over each other's: the median of the rounds."""
    return {
        f"limit_{limit}": {
            name: round(statistics.median(service_over(name, limit, rounds)), 2)
            for name in rounds[0][limit]
            if name != SERVICE.name
        }
        for limit in LIMITS
    }


def service_over(name: str, limit: int, rounds: Sequence[dict[int, dict[str, Measured]]]) -> list[float]:
    """Return the service's requests a second over another's, round by round."""
    return [
        measured[limit][SERVICE.name].requests_per_second / measured[limit][name].requests_per_second
        for measured in rounds
    ]


def table(rounds: Sequence[dict[int, dict[str, Measured]]]) -> Iterable[str]:
    """Yield the lines of a table: medians of the rounds, and the ratios' range."""
    yield "limit server          requests/s  p50 ms  p99 ms  CPU ms of PostgreSQL  service over it"
    for limit in LIMITS:
        for name in rounds[0][limit]:
            each = [measured[limit][name] for measured in rounds]
            over = service_over(name, limit, rounds)
            yield (
                f"{limit:>5} {name:<15} {median(each, 'requests_per_second'):>10.0f} {median(each, 'p50_ms'):>7.2f} "
                f"{median(each, 'p99_ms'):>7.2f} {median(each, 'server_cpu_ms'):>7.3f} "
                f"{median(each, 'database_cpu_ms'):>13.3f}  "
                f"{ranged(over)}"
            )


def buffers(places: Places, *, organization_id: int) -> dict[str, int]:
    """Return how many buffers the page statement reads, far behind in the list and within the tie."""
    listing = Listing(Access(organization_id, MODE))
    found = {}
    for limit in LIMITS:
        explained = Explained(page_statement(limit, has_start=True))
        for name, start in ((f"limit_{limit}", places.end), (f"limit_{limit}_ties", places.ties)):
            found[name] = read_by(explained.rows(listing.values(start=start.payment_id)))
    return found


class Explained:
    """A statement's plan, as it was run, in place of its rows."""

    def __init__(self, statement: Any) -> None:
        self.statement = statement

    def rows(self, values: Mapping[str, Any]) -> Any:
        from django.db import connection  # noqa: PLC0415

        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {self.statement.sql}", values)
            return cursor.fetchall()


def read_by(rows: Any) -> int:
    ((plan,),) = rows
    node = (plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"]
    return int(node["Shared Hit Blocks"] + node["Shared Read Blocks"])
