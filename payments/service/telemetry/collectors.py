"""Metrics that each scrape reads: versions, the workers of Citus, and the times of imports."""

import platform
from collections.abc import Iterable

import django
from django.db import Error
from prometheus_client import Metric
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from payments import __version__
from payments.database.workers import find_workers
from payments.models import ImportTimes, ImportWay
from payments.runtime import time_limits
from payments.runtime.process import process
from payments.runtime.servers import PRIMARY


class Platform(Collector):
    """What the service runs on: versions, and the workers of a Citus cluster."""

    def collect(self) -> Iterable[Metric]:
        versions = {"version": __version__, "django": django.__version__, "python": platform.python_version()}
        info = GaugeMetricFamily("payments_build_info", "Versions of the service.", labels=list(versions))
        info.add_metric(list(versions.values()), 1)
        yield info
        up = GaugeMetricFamily("payments_citus_worker_up", "Whether a worker of Citus responds.", labels=["worker"])
        for worker, responds in find_workers(PRIMARY).items():
            up.add_metric([worker], responds)
        yield up


class Freshness(Collector):
    """When organizations imported last, and how many of them are late. Without the database, there are no samples."""

    def collect(self) -> Iterable[Metric]:
        try:
            with process.deadline.shortened(time_limits.SCRAPE.seconds):
                values = ImportTimes.objects.using(PRIMARY).freshness()
        except Error:
            return
        late = "Organizations and modes whose next import is late."
        yield GaugeMetricFamily("payments_imports_late", late, values["late"])
        for edge in ("oldest", "newest"):
            name = f"payments_last_import_{edge}_timestamp_seconds"
            family = GaugeMetricFamily(name, f"The {edge} of the last imports by a way.", labels=["way"])
            for way in ImportWay:
                if time := values[f"{edge}_{way}"]:
                    family.add_metric([way], time.timestamp())
            yield family
