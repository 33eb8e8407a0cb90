"""What the choice of a server costs a request, in this process: the same server is asked, by the same connection."""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import cycle

from django.db import connections

from benchmarks.pages import LIMITS, Places
from benchmarks.servers import from_path
from payments.routing import server_for_lists
from payments.runtime.servers import PRIMARY, REPLICA
from payments_site.wsgi import application
from tests.support.exchange import Request, call_application

BLOCK_REQUESTS = 100
BLOCKS_A_ROUND = 10
ROUTINGS = 100_000


def measure_routing(places: Places, *, key: str, rounds: int) -> Iterator[str]:
    """Yield the lines of a table: of many requests' times the quarter that was least disturbed."""
    yield "| limit | µs of a request | with a replica to choose | over |"
    yield "|---|---|---|---|"
    for limit in LIMITS:
        requests = cycle(
            Request(f"GET {from_path(limit, start)}", (("Authorization", f"Bearer {key}"), ("Host", "localhost")))
            for start in places.anywhere
        )
        alone: list[float] = []
        routed: list[float] = []
        for number in range(rounds * BLOCKS_A_ROUND + 1):
            block = [next(requests) for _ in range(BLOCK_REQUESTS)]
            # Who comes first finds what it needs farther away.
            for is_routed in (False, True) if number % 2 else (True, False):
                with choosing() if is_routed else nullcontext():
                    times = list(map(microseconds, block))
                if number:
                    (routed if is_routed else alone).extend(times)
        least, more = (statistics.quantiles(times)[0] for times in (alone, routed))
        yield f"| {limit} | {least:.1f} | {more:.1f} | {more / least:.3f} |"
    yield f"The router alone: {router_microseconds():.2f} µs"


def microseconds(request: Request) -> float:
    """Return this thread's processor time for an answer."""
    began = time.thread_time_ns()
    assert call_application(application, request).status == 200
    return (time.thread_time_ns() - began) / 1000


def router_microseconds() -> float:
    """Return the microseconds that choosing a server takes, once in each request."""
    with choosing():
        began = time.thread_time_ns()
        for _ in range(ROUTINGS):
            assert server_for_lists() == REPLICA
        return (time.thread_time_ns() - began) / ROUTINGS / 1000


@contextmanager
def choosing() -> Iterator[None]:
    """Have the primary's own connection be the replica's, too."""
    connections.settings[REPLICA] = connections.settings[PRIMARY]
    connections[REPLICA] = connections[PRIMARY]
    try:
        yield
    finally:
        del connections[REPLICA]
        del connections.settings[REPLICA]
