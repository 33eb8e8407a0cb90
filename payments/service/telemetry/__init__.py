"""Metrics and traces of the service, which the hooks of `payments.runtime.hooks` call.

Their packages are imported only if METRICS or TRACING is on.
"""

import os

from payments.conf import conf
from payments.runtime.process import process

METRICS_DIRECTORY = conf.RUNTIME_DIRECTORY / "metrics"

# prometheus_client reads the variable when it is imported for the first time, which the modules of this package do.
os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(METRICS_DIRECTORY)


def register_metrics() -> None:
    if conf.METRICS:
        from payments.service.telemetry.metrics import MetricsHook  # noqa: PLC0415

        process.hooks.register(MetricsHook())


def register_tracing() -> None:
    if conf.TRACING:
        from payments.service.telemetry import tracing  # noqa: PLC0415

        tracing.begin_tracing()
