"""Cost of metrics and traces for a request, measured in this process without a server."""

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
from payments.service.telemetry import metrics, tracing
from payments_site.wsgi import application

# The configurations take turns, so that disturbances affect all of them.
TURN_REQUESTS = 20
TURNS_PER_ROUND = 10

EXPORTED_REQUESTS = 1_000
EXPORT_INTERVAL_MS = 200
EXPORT_END_SECONDS = 0.5
ONE_IN_TEN = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"}


def measure_telemetry(key: str, *, rounds: int) -> Iterator[str]:
    """Yield the lines of a table."""
    with span_receiver() as port:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{port}"
        os.environ["OTEL_BSP_SCHEDULE_DELAY"] = str(EXPORT_INTERVAL_MS)
        metrics_hooks, tracing_hooks = hooks_of(start_metrics), hooks_of(tracing.begin)
        os.environ.update(ONE_IN_TEN)
        configurations: dict[str, list[Hook]] = {
            "neither": [],
            "`METRICS`": metrics_hooks,
            "`TRACING`, one request in ten": hooks_of(tracing.begin),
            "`TRACING`, every request": tracing_hooks,
        }
        turns = [
            {
                (name, limit): request_microseconds(hooks, limit, key)
                for name, hooks in configurations.items()
                for limit in LIMITS
            }
            for _ in tqdm(range(rounds * TURNS_PER_ROUND), disable=None)
        ]
        exporting = {name: export_microseconds(hooks, key) for name, hooks in configurations.items()}
    columns = [f"µs per request, limit {limit}" for limit in LIMITS]
    yield f"| enabled | {' | '.join(columns)} | µs of other threads per request |"
    yield f"|---|{'---|' * (len(LIMITS) + 1)}"
    for name in configurations:
        medians = [statistics.median(turn[name, limit] for turn in turns) for limit in LIMITS]
        added = [statistics.median(turn[name, limit] - turn["neither", limit] for turn in turns) for limit in LIMITS]
        cells = [f"{median:.0f} ({more:+.0f})" for median, more in zip(medians, added, strict=True)]
        yield f"| {name} | {' | '.join(cells)} | {exporting[name]:.0f} |"


def start_metrics() -> None:
    process.hooks.register(metrics.MetricsHook())
    process.hooks.worker_started()


def hooks_of(start: Callable[[], None]) -> list[Hook]:
    """Return the hooks that `start` registers, and unregister them."""
    start()
    hooks = list(process.hooks.registered)
    process.hooks.registered.clear()
    return hooks


def request_microseconds(hooks: list[Hook], limit: int, key: str) -> float:
    """Return the processor time of a request in its own thread."""
    with registered(hooks):
        began = time.thread_time()
        send_requests(limit, key, count=TURN_REQUESTS)
        return (time.thread_time() - began) / TURN_REQUESTS * 1e6


def export_microseconds(hooks: list[Hook], key: str) -> float:
    """Return the processor time of other threads per request: they export spans."""
    with registered(hooks):
        began = time.process_time() - time.thread_time()
        send_requests(LIMITS[0], key, count=EXPORTED_REQUESTS)
        time.sleep(EXPORT_END_SECONDS)
        return (time.process_time() - time.thread_time() - began) / EXPORTED_REQUESTS * 1e6


@contextmanager
def registered(hooks: list[Hook]) -> Iterator[None]:
    process.hooks.registered[:] = hooks
    yield
    process.hooks.registered.clear()


def send_requests(limit: int, key: str, *, count: int) -> None:
    headers = {"Authorization": f"Bearer {key}", "Host": "localhost"}
    environ = RequestFactory().get(f"/v2/payments?limit={limit}", headers=headers).environ
    for _ in range(count):
        application(dict(environ), check_status)


def check_status(status: str, _headers: Any) -> None:
    assert status == "200 OK", status


class SpanReceiver(BaseHTTPRequestHandler):
    """Accepts and discards spans."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        return


@contextmanager
def span_receiver() -> Iterator[int]:
    """Run a receiver of spans in another process, and yield its port."""
    server = HTTPServer(("127.0.0.1", 0), SpanReceiver)
    process = get_context("fork").Process(target=server.serve_forever, daemon=True)
    process.start()
    try:
        yield server.server_port
    finally:
        process.terminate()
        server.server_close()
