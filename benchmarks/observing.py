"""What it costs a request to be counted and traced: in this process, one way after the other, without a server."""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing import get_context
from typing import Any

from django.test import RequestFactory
from tqdm import tqdm

from benchmarks.pages import LIMITS
from payments.runtime.hooks import Hook
from payments.runtime.process import process
from payments.service.handler import Handler
from payments.service.telemetry import metrics, tracing

# Of each way in turn, so that all of them meet the same noise.
REQUESTS_EACH = 20
TURNS_EACH_ROUND = 10

REQUESTS_SENT = 1_000
SENT_EVERY_MILLISECONDS = 200
ALL_SENT_SECONDS = 0.5
ONE_IN_TEN = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"}


def measure_observing(key: str, *, rounds: int) -> Iterator[str]:
    """Yield the lines of a table."""
    with receiver() as port:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{port}"
        os.environ["OTEL_BSP_SCHEDULE_DELAY"] = str(SENT_EVERY_MILLISECONDS)
        off: list[Hook] = []
        counted, traced = switched_on(count), switched_on(tracing.begin)
        os.environ.update(ONE_IN_TEN)
        ways = {
            "neither": off,
            "`METRICS`": counted,
            "`TRACING`, one request in ten": switched_on(tracing.begin),
            "`TRACING`, every request": traced,
        }
        answer_requests = Handler()
        turns = [
            {
                (name, limit): own_microseconds(answer_requests, way, limit, key)
                for name, way in ways.items()
                for limit in LIMITS
            }
            for _ in tqdm(range(rounds * TURNS_EACH_ROUND), disable=None)
        ]
        sending = {name: sending_microseconds(answer_requests, way, key) for name, way in ways.items()}
    columns = [f"µs of a request, limit {limit}" for limit in LIMITS]
    yield f"| on | {' | '.join(columns)} | µs of other threads, a request |"
    yield f"|---|{'---|' * (len(LIMITS) + 1)}"
    for name in ways:
        medians = [statistics.median(turn[name, limit] for turn in turns) for limit in LIMITS]
        more = [statistics.median(turn[name, limit] - turn["neither", limit] for turn in turns) for limit in LIMITS]
        cells = [f"{median:.0f} ({by:+.0f})" for median, by in zip(medians, more, strict=True)]
        yield f"| {name} | {' | '.join(cells)} | {sending[name]:.0f} |"


def count() -> None:
    process.hooks.register(metrics.MetricsHook())
    process.hooks.worker_started()


def switched_on(begin: Callable[[], None]) -> list[Hook]:
    """Return the hooks that `begin` registers, and unregister them."""
    begin()
    hooks = list(process.hooks.registered)
    process.hooks.registered.clear()
    return hooks


def own_microseconds(answer_requests: Handler, hooks: list[Hook], limit: int, key: str) -> float:
    """Return for how long a request had the processor."""
    with switched_to(hooks):
        began = time.thread_time()
        ask(answer_requests, limit, key, times=REQUESTS_EACH)
        return (time.thread_time() - began) / REQUESTS_EACH * 1e6


def sending_microseconds(answer_requests: Handler, hooks: list[Hook], key: str) -> float:
    """Return for how long, beside a request, the sending of its spans had it."""
    with switched_to(hooks):
        began = time.process_time() - time.thread_time()
        ask(answer_requests, LIMITS[0], key, times=REQUESTS_SENT)
        time.sleep(ALL_SENT_SECONDS)
        return (time.process_time() - time.thread_time() - began) / REQUESTS_SENT * 1e6


@contextmanager
def switched_to(hooks: list[Hook]) -> Iterator[None]:
    process.hooks.registered[:] = hooks
    yield
    process.hooks.registered.clear()


def ask(answer_requests: Handler, limit: int, key: str, *, times: int) -> None:
    headers = {"Authorization": f"Bearer {key}", "Host": "localhost"}
    environ = RequestFactory().get(f"/v2/payments?limit={limit}", headers=headers).environ
    for _ in range(times):
        answer_requests(dict(environ), check)


def check(status: str, _headers: Any) -> None:
    assert status == "200 OK", status


class Taking(BaseHTTPRequestHandler):
    """Takes whatever it is sent."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        return


@contextmanager
def receiver() -> Iterator[int]:
    """Give the port of one for spans, in a process of its own."""
    server = HTTPServer(("127.0.0.1", 0), Taking)
    process = get_context("fork").Process(target=server.serve_forever, daemon=True)
    process.start()
    try:
        yield server.server_port
    finally:
        process.terminate()
        server.server_close()
