"""Forget what earlier processes have counted."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """`forget_metrics`: what `scripts/start` begins with. Like every command, it first checks the settings.

    The service can start without metrics, so a failure is only reported.
    """

    help = "Forget what processes have counted for /metrics that have ended, as the service does when it starts."

    def handle(self, *_args: Any, **_options: Any) -> None:
        if settings.METRICS:
            from payments.service.telemetry import slots  # noqa: PLC0415

            try:
                slots.forget(slots.directory())
            except OSError as error:
                self.stderr.write(f"Metrics are not kept: {error}")
