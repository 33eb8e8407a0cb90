"""What it costs to ask for some payments of the list: time, what is read, and by which index."""

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db import connection
from msgspec import Raw
from psycopg import ClientCursor

from benchmarks import dataset
from benchmarks.pages import MODE
from payments.api.parameters import parse_list_parameters
from payments.listing import Listing
from payments.models import Access, Status
from payments.page import page_statement
from payments.record import Record, encode
from payments.routing import fetch_rows

LIMIT = 20
TIMES = 3
RARE_EVERY = 50_000
OLD_SHARE = 0.1

# What is asked for, and how many of the payments match.
SHAPES = {
    "": "all",
    "status=succeeded": "most",
    "status=failed": "1 in 12",
    "status=pending": f"1 in {RARE_EVERY}",
    "status=authorized": "1 in 500, all of them old",
    "status=open,pending,authorized": "1 in 450, most of them old",
    "status=failed,canceled,pending": "1 in 8",
    "method=directdebit": "1 in 30",
    "method=giropay": "none",
    "customerId={customer}": "one customer's",
    "sequenceType=first": "none",
    "currency=USD": "1 in 13",
    "currency=CHF": "none",
    "currency=EUR&amount[gte]=10": "most",
    "currency=EUR&amount[gte]=2000": "a few",
    "createdAt[gte]=2025-03-01&createdAt[lt]=2025-03-02": "a day's",
    "paidAt[gte]=2025-03-01&paidAt[lt]=2025-03-02": "a day's",
    "paidAt[gte]=2025-03-01&paidAt[lt]=2025-04-01": "a month's",
    "paidAt[gte]=2025-03-01&paidAt[lt]=2025-04-01&createdAt[gte]=2025-02-28&createdAt[lt]=2025-04-01": "a month's",
    "paidAt[gte]=2025-01-02": "most",
    "metadata[number]={number}": "one",
    "metadata[shop]=web": "all",
    "metadata[shop]=none": "none",
    "metadata[shop]=web&status=pending": f"1 in {RARE_EVERY}",
    "status=pending&method=directdebit&sort=asc": "a few",
}


def records(count: int) -> Iterator[Record]:
    """Yield payments of which some are rare: a status, one that only old payments have, a pair that one has."""
    for number, record in enumerate(dataset.records(count)):
        yield msgspec.structs.replace(
            record,
            status=status(record.status, number, share=number / count),
            metadata=Raw(encode({"shop": "web", "number": str(number)})),
        )


def status(drawn: str, number: int, *, share: float) -> str:
    if drawn in {Status.OPEN, Status.PENDING} and number % (RARE_EVERY // 25):  # as one in 25 is drawn
        return Status.EXPIRED
    return Status.FAILED if drawn == Status.AUTHORIZED and share > OLD_SHARE else drawn


@dataclass(frozen=True)
class Cost:
    """What a page took."""

    milliseconds: float
    buffers: int | None  # pages of the database that were read; SQLite does not count them
    indexes: str


def measure_filters() -> Iterator[str]:
    """Yield the lines of a table."""
    key = Access(dataset.LARGE.id, MODE)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, customer_id, metadata FROM payments_payment WHERE organization_id = %s AND mode = %s "
            "AND created_at < %s AND customer_id <> '' ORDER BY created_at DESC, id DESC LIMIT 1",
            [key.organization_id, key.mode, dataset.UNTIL - dataset.SPAN / 2],
        )
        middle, customer, metadata = cursor.fetchone()
    values = {"customer": customer, "number": json.loads(metadata)["number"]}
    yield "| asked for | which are | first page, ms | from the middle, ms | buffers | index |"
    yield "|---|---|---|---|---|---|"
    for query, which in SHAPES.items():
        first, later = (cost(query.format(**values), key, start=start) for start in (None, middle))
        name = query.split("={")[0] or "(everything)"
        read = "" if first.buffers is None else f"{first.buffers}, {later.buffers}"
        indexes = first.indexes if first.indexes == later.indexes else f"{first.indexes}; {later.indexes}"
        yield f"| `{name}` | {which} | {first.milliseconds:.1f} | {later.milliseconds:.1f} | {read} | {indexes} |"


def cost(query: str, access: Access, *, start: str | None) -> Cost:
    selection = parse_list_parameters(query, is_known=lambda _: True).selection
    listing = Listing(access, selection)
    statement = page_statement(limit=LIMIT, has_start=start is not None, order=selection.order, shape=listing.shape)
    fetch_rows(listing, statement, start=start)
    milliseconds = min(timed(listing, statement, start) for _ in range(TIMES))
    plan = Explained(statement).rows(listing.values(start=start))
    if connection.vendor == "sqlite":
        lines = [line for *_, line in plan]
        return Cost(milliseconds, None, named(re.findall(r"USING (?:COVERING )?INDEX (\w+)", " ".join(lines))))
    found = json.dumps(plan)
    node = plan[0][0][0]["Plan"]
    read = node["Shared Hit Blocks"] + node["Shared Read Blocks"]
    ways = re.findall(r'"Index Name": "(\w+)"|"Node Type": "(Sort|Seq Scan|Incremental Sort)"', found)
    return Cost(milliseconds, read, named(index or way.lower() for index, way in ways))


def timed(listing: Listing, statement: Any, start: str | None) -> float:
    began = time.perf_counter()
    fetch_rows(listing, statement, start=start)
    return (time.perf_counter() - began) * 1000


def named(ways: Iterable[str]) -> str:
    """Return each way once, but for the search of the payment with which a page begins."""
    kept = dict.fromkeys(way.removeprefix("payment_") for way in ways if "pkey" not in way and "autoindex" not in way)
    return ", ".join(kept)


class Explained:
    """A statement's plan in place of its rows, made as the statement's own is."""

    def __init__(self, statement: Any) -> None:
        self.statement = statement

    def rows(self, values: Mapping[str, Any]) -> Any:
        connection.ensure_connection()
        is_sqlite = connection.vendor == "sqlite"
        cursor = connection.cursor().cursor if is_sqlite else ClientCursor(connection.connection)
        explain = "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)"
        return cursor.execute(f"{explain} {self.statement.sql}", values).fetchall()
