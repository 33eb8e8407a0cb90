"""What the choice of a server costs a request, in this process: the same server is asked, by the same connection."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle

from django.db import connections, router

from benchmarks.pages import LIMITS, Places
from benchmarks.servers import from_path
from payments.servers import PRIMARY, REPLICA
from payments_site.routers import ReplicaRouter
from payments_site.wsgi import application
from tests.exchange import Request, call

BLOCK_REQUESTS = 100


def measure_routing(places: Places, *, key: str, rounds: int) -> Iterator[str]:
    """Yield the lines of a table: medians of blocks of requests, one without and one with a choice in turn."""
    yield "| limit | µs of a request | with a replica to choose | over |"
    yield "|---|---|---|---|"
    for limit in LIMITS:
        requests = cycle(
            Request(f"GET {from_path(limit, start)}", (("Authorization", f"Bearer {key}"), ("Host", "localhost")))
            for start in places.anywhere
        )
        blocks = [measured([next(requests) for _ in range(BLOCK_REQUESTS)]) for _ in range(rounds * 10 + 1)][1:]
        alone, choosing = (statistics.median(each) for each in zip(*blocks, strict=True))
        over = statistics.median(chosen / single for single, chosen in blocks)
        yield f"| {limit} | {alone:.1f} | {choosing:.1f} | {over:.3f} |"


def measured(requests: Sequence[Request]) -> tuple[float, float]:
    alone = microseconds(requests)
    with choosing():
        return alone, microseconds(requests)


def microseconds(requests: Sequence[Request]) -> float:
    """Return this thread's processor time for each of them."""
    began = time.thread_time_ns()
    for request in requests:
        assert call(application, request).status == 200
    return (time.thread_time_ns() - began) / len(requests) / 1000


@contextmanager
def choosing() -> Iterator[None]:
    """Have the primary's own connection be the replica's, too."""
    usual = router.routers
    connections.settings[REPLICA] = connections.settings[PRIMARY]
    connections[REPLICA] = connections[PRIMARY]
    router.routers = [ReplicaRouter()]
    try:
        yield
    finally:
        router.routers = usual
        del connections[REPLICA]
        del connections.settings[REPLICA]
