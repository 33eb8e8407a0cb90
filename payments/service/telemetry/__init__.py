"""What the service tells of itself to those who run it, where settings say so.

routes    the few names that requests are counted under
slots     a machine's processes, and the files in which each of them counts
metrics   what is counted, and `/metrics`
tracing   requests and their statements as spans

What it is told, and by whom, is `payments.runtime.hooks`. What these need is loaded only where it is asked for.
"""

import tomllib
from functools import cache

from django.conf import settings


def begin() -> None:
    """Have the requests of this process counted and traced, as the settings say."""
    if settings.METRICS:
        from payments.service.telemetry import metrics  # noqa: PLC0415

        metrics.begin()
    if settings.TRACING:
        from payments.service.telemetry import tracing  # noqa: PLC0415

        tracing.begin()


@cache
def version() -> str:
    """Return that of this service."""
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    return str(project["version"])
