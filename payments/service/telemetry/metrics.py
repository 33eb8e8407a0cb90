"""The metrics for Prometheus, and the page `/metrics`, which adds up the metrics of all processes of the machine."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from http.client import SERVICE_UNAVAILABLE

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector

from payments.conf import conf
from payments.runtime.hooks import Hook, Progress, Result
from payments.service.telemetry import METRICS_DIRECTORY
from payments.service.telemetry.collectors import Freshness, Platform
from payments.service.telemetry.files import create_files, remove_dead_gauges
from payments.service.telemetry.routes import method, route

# From a 304 response to a request that exceeds its deadline.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 3.0)

OUTCOMES = ("succeeded", "refused", "failed")

# The kinds of files of a process, and their sizes in bytes. A worker has one counter for every combination of labels.
# LAST is created last: it exists if all others do.
SMALL, LARGE = 2**12, 2**17
LAST = "gauge_livesum"
COMMAND_FILES = dict.fromkeys(("counter", "gauge_livemin", "gauge_livemostrecent", "gauge_max", LAST), SMALL)
WORKER_FILES = {"counter": LARGE, "histogram": LARGE, "gauge_livemostrecent": SMALL, "gauge_max": SMALL, LAST: SMALL}

NO_METRICS = "Metrics are disabled. The log says why.\n"

logger = logging.getLogger(__name__)


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        # To find the metric of some label values takes longer than to count, so these are cached.
        self.requests = cache(counter("requests", "Requests with a response.", "route", "method", "status").labels)
        self.request_seconds = cache(histogram("request_seconds", "Duration of requests.").labels)
        self.database_seconds = cache(
            histogram("database_seconds", "Time that requests waited for the database.").labels
        )
        self.workers = gauge("workers", "Processes that serve requests.", mode="livesum")
        self.threads = gauge("threads", "Threads that serve requests, of all workers.", mode="livesum")
        self.imports = counter("imports", "Ended imports.", "outcome")
        for outcome in OUTCOMES:
            self.imports.labels(outcome)  # starts at 0, so that Prometheus sees the first increase
        self.imports_running = gauge("imports_running", "Running imports.", mode="livesum")
        self.batches = counter("import_batches", "Batches of records that imports have processed.")
        self.read = counter("import_records_read", "Records that imports have read.")
        self.refused = counter("import_records_refused", "Records that imports have refused.")
        self.written = counter("import_payments_written", "Payments that committed imports have added or changed.")
        self.lag_seconds = gauge("replica_lag_seconds", "Replication lag, as last measured.", mode="livemostrecent")
        self.replica_skipped = counter(
            "replica_passed_over", "Reads on the primary although a replica is configured.", "reason"
        )

    # Without an import these have no value.

    @cached_property
    def running_since(self) -> Gauge:
        return gauge("import_running_since_timestamp_seconds", "Start of the oldest running import.", mode="livemin")

    @cached_property
    def last_success(self) -> Gauge:
        return gauge("import_last_success_timestamp_seconds", "End of the last successful import.", mode="max")


def counter(name: str, description: str, *labels: str) -> Counter:
    return Counter(f"payments_{name}", description, labels, registry=None)


def gauge(name: str, description: str, *, mode: str) -> Gauge:
    return Gauge(f"payments_{name}", description, multiprocess_mode=mode, registry=None)  # type: ignore[arg-type]  # a Literal


def histogram(name: str, description: str) -> Histogram:
    return Histogram(f"payments_{name}", description, ["route"], buckets=BUCKETS, registry=None)


class DatabaseTime(threading.local):
    """How long the current request of a thread has waited for the database."""

    seconds = 0.0


class MetricsHook(Hook):
    """Counts requests, imports and the use of replicas.

    A process creates its metrics when it starts as a worker, or at the first event that they count.
    """

    def __init__(self) -> None:
        self.file_sizes = COMMAND_FILES
        self.database_time = DatabaseTime()
        self.read = self.refused = 0

    @cached_property
    def metrics(self) -> Metrics | None:
        """The metrics of this process; None if their files cannot be created."""
        try:
            create_files(self.file_sizes)
        except OSError as error:
            logger.warning("Metrics are disabled: %s", error)
            return None
        return Metrics()

    def worker_started(self) -> None:
        self.file_sizes = WORKER_FILES
        if self.metrics:
            self.metrics.workers.set(1)
            self.metrics.threads.set(conf.WEB_THREADS)

    def request(self, request: HttpRequest, respond: Callable[[HttpRequest], HttpResponseBase]) -> HttpResponseBase:
        self.database_time.seconds = 0.0
        started_at = time.perf_counter()
        response = respond(request)
        seconds = time.perf_counter() - started_at
        if self.metrics:
            name = route(request.path_info)
            self.metrics.requests(name, method(request.method), response.status_code).inc()
            self.metrics.request_seconds(name).observe(seconds)
            if self.database_time.seconds:
                self.metrics.database_seconds(name).observe(self.database_time.seconds)
        return response

    def statement(self, sql: str, run: Callable[[], Result]) -> Result:
        started_at = time.perf_counter()
        try:
            return run()
        finally:
            self.database_time.seconds += time.perf_counter() - started_at

    def import_started(self) -> None:
        self.read = self.refused = 0
        if self.metrics:
            self.metrics.imports_running.inc()
            if self.file_sizes is COMMAND_FILES:  # a gauge cannot be removed, and imports of a worker have a deadline
                self.metrics.running_since.set_to_current_time()

    def import_progressed(self, progress: Progress) -> None:
        if self.metrics:
            self.metrics.batches.inc()
            self.metrics.read.inc(progress.read - self.read)
            self.metrics.refused.inc(progress.refused - self.refused)
            self.read, self.refused = progress.read, progress.refused

    def import_finished(self, progress: Progress, *, outcome: str) -> None:
        if self.metrics:
            self.metrics.imports_running.dec()
            self.metrics.imports.labels(outcome).inc()
            if outcome != "failed":
                self.metrics.written.inc(progress.written)
            if outcome == "succeeded":
                self.metrics.last_success.set_to_current_time()

    def replica_lag_measured(self, seconds: float) -> None:
        if self.metrics:
            self.metrics.lag_seconds.set(seconds)

    def replica_skipped(self, reason: str) -> None:
        if self.metrics:
            self.metrics.replica_skipped.labels(reason).inc()


@require_safe
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Return the metrics of all processes of this machine in Prometheus' text format."""
    headers = {"Cache-Control": "no-store"}
    remove_dead_gauges()
    if not any(METRICS_DIRECTORY.glob(f"{LAST}_*.db")):
        return HttpResponse(NO_METRICS, status=SERVICE_UNAVAILABLE, content_type="text/plain", headers=headers)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    registry.register(Platform())
    registry.register(Freshness())
    while True:
        with suppress(FileNotFoundError):  # a process has taken over a file meanwhile: read all files again
            return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4, headers=headers)
