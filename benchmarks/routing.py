"""Cost of choosing a server for a request, measured in this process with one connection to one server."""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import cycle

from django.db import connections

from benchmarks.pages import LIMITS, Positions
from benchmarks.servers import from_path
from payments.routing import server_for_lists
from payments.runtime.servers import PRIMARY, REPLICA
from payments_site.wsgi import application
from tests.support.exchange import Request, call_application

BLOCK_REQUESTS = 100
BLOCKS_PER_ROUND = 10
CHOICES = 100_000


def measure_routing(positions: Positions, *, key: str, rounds: int) -> Iterator[str]:
    """Yield the lines of a table. It shows the first quartile, which disturbances affect least."""
    yield "| limit | µs per request | µs with a replica | ratio |"
    yield "|---|---|---|---|"
    for limit in LIMITS:
        requests = cycle(
            Request(f"GET {from_path(limit, start)}", (("Authorization", f"Bearer {key}"), ("Host", "localhost")))
            for start in positions.anywhere
        )
        times: dict[bool, list[float]] = {False: [], True: []}  # by whether a replica is configured
        for number in range(rounds * BLOCKS_PER_ROUND + 1):
            block = [next(requests) for _ in range(BLOCK_REQUESTS)]
            # Both take turns to be the first, because the caches contain less of what the first one needs.
            for has_replica in (False, True) if number % 2 else (True, False):
                with replica_routing() if has_replica else nullcontext():
                    block_times = list(map(request_microseconds, block))
                if number:  # the first block is not counted
                    times[has_replica].extend(block_times)
        without_replica, with_replica = (statistics.quantiles(times[has_replica])[0] for has_replica in (False, True))
        ratio = with_replica / without_replica
        yield f"| {limit} | {without_replica:.1f} | {with_replica:.1f} | {ratio:.3f} |"
    yield f"Only the choice of the server: {choice_microseconds():.2f} µs"


def request_microseconds(request: Request) -> float:
    """Return the processor time of a request in this thread."""
    began = time.thread_time_ns()
    assert call_application(application, request).status == 200
    return (time.thread_time_ns() - began) / 1000


def choice_microseconds() -> float:
    """Return the time of choosing the server, once per request."""
    with replica_routing():
        began = time.thread_time_ns()
        for _ in range(CHOICES):
            assert server_for_lists() == REPLICA
        return (time.thread_time_ns() - began) / CHOICES / 1000


@contextmanager
def replica_routing() -> Iterator[None]:
    """Configure a replica that is the primary, with the same connection."""
    connections.settings[REPLICA] = connections.settings[PRIMARY]
    connections[REPLICA] = connections[PRIMARY]
    try:
        yield
    finally:
        del connections[REPLICA]
        del connections.settings[REPLICA]
