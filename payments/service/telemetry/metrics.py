"""What is counted for Prometheus, and the page that gives it out: the sums of all of this machine's processes."""

import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable
from functools import cache, cached_property

import django
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest, values
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from payments.runtime.hooks import Hook, Progress, Result
from payments.runtime.process import process
from payments.service.telemetry import slots, version
from payments.service.telemetry.routes import method, route

# From a page that its client has already to what the watchdog ends.
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 3.0)

OUTCOMES = ("succeeded", "refused", "failed")

logger = logging.getLogger(__name__)


class Waited(threading.local):
    """For how long the thread's request has waited for the database so far."""

    seconds = 0.0


waited = Waited()


class Instruments:
    """What a process counts with."""

    def __init__(self) -> None:
        self.requests = counter("requests", "Requests that were answered.", "route", "method", "status")
        self.request_seconds = histogram("request_seconds", "How long requests took.")
        self.database_seconds = histogram("database_seconds", "How long those waited for the database that asked it.")
        self.workers = gauge("workers", "Processes that answer requests.", mode="livesum")
        self.imports = counter("imports", "Imports that have ended.", "outcome")
        for outcome in OUTCOMES:
            self.imports.labels(outcome)  # 0, so that the first is seen to be one more
        self.imports_running = gauge("imports_running", "Imports under way.", mode="livesum")
        self.batches = counter("import_batches", "Batches of records that imports went through.")
        self.read = counter("import_records_read", "Records that imports read.")
        self.refused = counter("import_records_refused", "Records that imports refused.")
        self.written = counter("import_payments_written", "Payments that imports added or changed, once committed.")
        self.lag_seconds = gauge(
            "replica_lag_seconds", "How far the replica that is read from is behind.", mode="livemostrecent"
        )
        self.passed_over = counter(
            "replica_passed_over", "Reads of the primary where a replica might have been read.", "reason"
        )

    # Of a process that has not imported there is nothing to tell.

    @cached_property
    def running_since(self) -> Gauge:
        return gauge("import_running_since_timestamp_seconds", "When the import under way began.", mode="livemin")

    @cached_property
    def last_success(self) -> Gauge:
        return gauge("import_last_success_timestamp_seconds", "When an import last wrote all it read.", mode="max")


def counter(name: str, words: str, *labels: str) -> Counter:
    return Counter(f"payments_{name}", words, labels, registry=None)


def gauge(name: str, words: str, *, mode: str) -> Gauge:
    return Gauge(f"payments_{name}", words, multiprocess_mode=mode, registry=None)  # type: ignore[arg-type]  # words


def histogram(name: str, words: str) -> Histogram:
    return Histogram(f"payments_{name}", words, ["route"], buckets=SECONDS, registry=None)


@cache
def instruments() -> Instruments | None:
    """Return what this process counts with, in files of its own; None where it has none, as the log says then."""
    try:
        directory = slots.directory()
        number = slots.take(directory)
    except OSError as error:
        logger.warning("Metrics are not kept: %s", error)
        return None
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
    values.ValueClass = values.MultiProcessValue(lambda: number)
    return Instruments()


def begin() -> None:
    """Count this process as one that answers requests, and each of them."""
    if found := instruments():
        found.workers.set(1)
        process.hooks.register(RequestHook(found))


class RequestHook(Hook):
    """Counts requests by the few names that they have."""

    def __init__(self, found: Instruments) -> None:
        self.requests = cache(found.requests.labels)
        self.request_seconds = cache(found.request_seconds.labels)
        self.database_seconds = cache(found.database_seconds.labels)

    def request(self, request: HttpRequest, respond: Callable[[HttpRequest], HttpResponseBase]) -> HttpResponseBase:
        """Return the answer, which is counted."""
        waited.seconds = 0.0
        begun_at = time.perf_counter()
        response = respond(request)
        seconds = time.perf_counter() - begun_at
        name = route(request.path_info)
        self.requests(name, method(request.method), response.status_code).inc()
        self.request_seconds(name).observe(seconds)
        if waited.seconds:
            self.database_seconds(name).observe(waited.seconds)
        return response


class MetricsHook(Hook):
    """Counts what commands and requests tell of."""

    def statement(self, sql: str, run: Callable[[], Result]) -> Result:
        begun_at = time.perf_counter()
        try:
            return run()
        finally:
            waited.seconds += time.perf_counter() - begun_at

    def import_started(self) -> None:
        self.read = self.refused = 0
        if found := instruments():
            found.running_since.set_to_current_time()
            found.imports_running.set(1)

    def import_progressed(self, progress: Progress) -> None:
        if found := instruments():
            found.batches.inc()
            found.read.inc(progress.read - self.read)
            found.refused.inc(progress.refused - self.refused)
            self.read, self.refused = progress.read, progress.refused

    def import_finished(self, progress: Progress, *, outcome: str) -> None:
        if found := instruments():
            found.imports_running.set(0)
            found.imports.labels(outcome).inc()
            if outcome != "failed":
                found.written.inc(progress.changed)
            if outcome == "succeeded":
                found.last_success.set_to_current_time()

    def replica_lag_measured(self, seconds: float) -> None:
        if found := instruments():
            found.lag_seconds.set(seconds)

    def replica_skipped(self, reason: str) -> None:
        if found := instruments():
            found.passed_over.labels(reason).inc()


class Machine(Collector):
    """All that this machine's processes have counted, and what they run."""

    def collect(self) -> Iterable[Metric]:
        yield from MultiProcessCollector.merge(slots.readable(slots.directory()))
        runs = {"version": version(), "django": django.__version__, "python": platform.python_version()}
        build = GaugeMetricFamily("payments_build_info", "What the service is, and runs on.", labels=list(runs))
        build.add_metric(list(runs.values()), 1)
        yield build


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Answer Prometheus."""
    registry = CollectorRegistry()
    registry.register(Machine())
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4, headers=headers)
