"""The feed over HTTP: read by one client from its beginning, and polled at its end."""

import statistics
import time
from collections.abc import Iterator, Sequence
from http.client import NOT_MODIFIED, OK, HTTPResponse

from tqdm import tqdm

from benchmarks.changes.pages import read_buffers
from benchmarks.changes.positions import ACCESS, LISTING, count_payments, find_end
from benchmarks.database import log
from benchmarks.memory import largest_worker_mb
from benchmarks.servers import SERVICE, RunningServer, running
from payments.changes import changes_query
from payments.routing import revision_query
from tests.support.connecting import connected_to
from tests.support.service import Walker

LIMIT = 250
BEGINNING = f"/v2/payments/changes?limit={LIMIT}"
END = f"{BEGINNING}&from=now"
WARM_UP_REQUESTS = 200  # so that every worker has connected and prepared the statements
POLLS = 500


class Client(Walker):
    """A client that measures how long each response takes."""

    def __init__(self, service: RunningServer, key: str) -> None:
        super().__init__(service.base_url, key)
        self.milliseconds: list[float] = []

    def send(self, href: str, **headers: str) -> tuple[HTTPResponse, bytes]:
        began = time.perf_counter()
        response = super().send(href, **headers)
        self.milliseconds.append((time.perf_counter() - began) * 1000)
        return response


def measure_reading(url: str, key: str) -> Iterator[str]:
    """Yield the lines of a table. Its seconds do not include the time in which the client parses the responses."""
    log("Reading the feed")
    with connected_to(url):
        count = count_payments()
    with running(SERVICE, url) as service:
        poll(service, key, BEGINNING, count=WARM_UP_REQUESTS)
        before = largest_worker_mb(service)
        with Client(service, key) as client:
            ids = read_ids(client, count=count)
        after = largest_worker_mb(service)
    assert len(ids) == len(set(ids)) == count, (len(ids), len(set(ids)), count)
    seconds = sum(client.milliseconds) / 1000
    yield "| payments | requests | s | payments/s | p50 ms | p99 ms | MB of the largest worker: before | after |"
    yield "|---|---|---|---|---|---|---|---|"
    yield (
        f"| {count:,} | {client.requests:,} | {seconds:.1f} | {count / seconds:,.0f} "
        f"| {percentiles(client.milliseconds)} | {before} | {after} |"
    )


def read_ids(client: Client, *, count: int) -> list[str]:
    """Return the IDs of all payments in the order of the feed."""
    ids: list[str] = []
    with tqdm(total=count, unit=" payments", disable=None) as progress:
        for page in client.walk("next", BEGINNING):
            payments = page["_embedded"]["payments"]
            ids += [payment["id"] for payment in payments]
            progress.update(len(payments))
    return ids


def measure_polls(url: str, key: str) -> Iterator[str]:
    """Yield the lines of a table: requests of a client that has read the whole feed."""
    log("Polling at the end of the feed")
    with running(SERVICE, url) as service:
        with Walker(service.base_url, key) as client:
            href = client.get(END)["_links"]["later"]["href"]
            etag = client.send(href)[0].headers["ETag"]
        full = poll(service, key, href, count=POLLS)
        not_modified = poll(service, key, href, count=POLLS, etag=etag)
    with connected_to(url):
        full_buffers = read_buffers(changes_query(LISTING, find_end(), limit=LIMIT))
        revision_buffers = read_buffers(revision_query(ACCESS))
    yield "| response to a poll at the end | p50 ms | p99 ms | buffers, without those of the key |"
    yield "|---|---|---|---|"
    yield f"| 200, no payments | {percentiles(full)} | {full_buffers} |"
    yield f"| 304 | {percentiles(not_modified)} | {revision_buffers} |"


def poll(service: RunningServer, key: str, href: str, *, count: int, etag: str | None = None) -> list[float]:
    """Request the same page again and again, and return the milliseconds of each response."""
    headers, status = ({"If_None_Match": etag}, NOT_MODIFIED) if etag else ({}, OK)
    with Client(service, key) as client:
        for _ in range(count):
            assert client.send(href, **headers)[0].status == status
    return client.milliseconds


def percentiles(milliseconds: Sequence[float]) -> str:
    """Return p50 and p99 as cells of a table."""
    return f"{statistics.median(milliseconds):.2f} | {statistics.quantiles(milliseconds, n=100)[-1]:.2f}"
