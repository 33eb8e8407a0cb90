"""Cost of filtered pages: time, buffers, and the indexes that are used."""

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
from django.db import connection
from msgspec import Raw

from benchmarks import dataset
from benchmarks.dataset import MODE
from benchmarks.plans import explain, explain_on_sqlite
from payments.api.parameters import parse_list_parameters
from payments.database.round_trips import Query
from payments.listing import Listing
from payments.models import Access, Status
from payments.page import page_statement
from payments.record import Record, encode
from payments.routing import fetch_rows
from tests.support.sql import buffers_read

LIMIT = 20
RUNS = 3
RARE_INTERVAL = 50_000
OLD_SHARE = 0.1

# Queries, and the share of payments that match.
QUERIES = {
    "": "all",
    "status=succeeded": "most",
    "status=failed": "1 in 12",
    "status=pending": f"1 in {RARE_INTERVAL}",
    "status=authorized": "1 in 500, all of them old",
    "status=open,pending,authorized": "1 in 450, mostly old",
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
    "metadata[shop]=web&status=pending": f"1 in {RARE_INTERVAL}",
    "status=pending&method=directdebit&sort=asc": "a few",
}


def records(count: int) -> Iterator[Record]:
    """Yield payments with a rare status, a status that only old payments have, and a metadata pair that one has."""
    for number, record in enumerate(dataset.records(count)):
        yield msgspec.structs.replace(
            record,
            status=status(record.status, number, share=number / count),
            metadata=Raw(encode({"shop": "web", "number": str(number)})),
        )


def status(random_status: str, number: int, *, share: float) -> str:
    if random_status in {Status.OPEN, Status.PENDING} and number % (RARE_INTERVAL // 25):  # 1 in 25 has such a status
        return Status.EXPIRED
    return Status.FAILED if random_status == Status.AUTHORIZED and share > OLD_SHARE else random_status


@dataclass(frozen=True)
class Cost:
    """The cost of a page."""

    milliseconds: float
    buffers: int | None  # unknown on SQLite
    indexes: str


def measure_filters() -> Iterator[str]:
    """Yield the lines of a table."""
    access = Access(dataset.LARGE.id, MODE)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, customer_id, metadata FROM payments_payment WHERE organization_id = %s AND mode = %s "
            "AND created_at < %s AND customer_id <> '' ORDER BY created_at DESC, id DESC LIMIT 1",
            [access.organization_id, access.mode, dataset.UNTIL - dataset.SPAN / 2],
        )
        middle, customer, metadata = cursor.fetchone()
    values = {"customer": customer, "number": json.loads(metadata)["number"]}
    yield "| filter | matches | first page, ms | from the middle, ms | buffers | index |"
    yield "|---|---|---|---|---|---|"
    for query, matches in QUERIES.items():
        first, later = (measure(query.format(**values), access, start=start) for start in (None, middle))
        name = query.split("={")[0] or "(none)"
        buffers = "" if first.buffers is None else f"{first.buffers}, {later.buffers}"
        indexes = first.indexes if first.indexes == later.indexes else f"{first.indexes}; {later.indexes}"
        yield f"| `{name}` | {matches} | {first.milliseconds:.1f} | {later.milliseconds:.1f} | {buffers} | {indexes} |"


def measure(query: str, access: Access, *, start: str | None) -> Cost:
    selection = parse_list_parameters(query).selection
    listing = Listing(access, selection)
    statement = page_statement(limit=LIMIT, has_start=start is not None, order=selection.order, shape=listing.shape)
    values = listing.values(start=start)
    page = Query(statement, values)
    fetch_rows(listing, page)
    milliseconds = min(run_milliseconds(listing, page) for _ in range(RUNS))
    if connection.vendor == "sqlite":
        plan = " ".join(explain_on_sqlite(statement, values))
        return Cost(milliseconds, None, distinct(re.findall(r"USING (?:COVERING )?INDEX (\w+)", plan)))
    document = explain(statement, values)
    scans = re.findall(r'"Index Name": "(\w+)"|"Node Type": "(Sort|Seq Scan|Incremental Sort)"', json.dumps(document))
    return Cost(milliseconds, buffers_read(document), distinct(index or node.lower() for index, node in scans))


def run_milliseconds(listing: Listing, query: Query) -> float:
    began = time.perf_counter()
    fetch_rows(listing, query)
    return (time.perf_counter() - began) * 1000


def distinct(scans: Iterable[str]) -> str:
    """Return the distinct names of scans, without those of the primary key, which look up the start of the page."""
    names = (name.removeprefix("payment_") for name in scans if "pkey" not in name and "autoindex" not in name)
    return ", ".join(dict.fromkeys(names))
