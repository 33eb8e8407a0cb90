"""Prepare the start of the service."""

import sqlite3
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from payments.management.command import PaymentsCommand
from payments.runtime.process import process
from payments.runtime.rate_limits import FILE_NAME


class Command(PaymentsCommand):
    """`prepare_service`."""

    help = """
        Check the settings and RUNTIME_DIRECTORY, and remove the metrics files of
        earlier processes. Only scripts/start needs it, before it starts the service.

        Exit status: 0 if the service can start, otherwise 1.
    """
    examples = ("manage.py prepare_service",)

    def handle(self, *_args: Any, **_options: Any) -> None:
        try:
            process.rate_limits.open()
            remove_old_metrics()
        except sqlite3.Error as error:
            path = settings.RUNTIME_DIRECTORY / FILE_NAME
            raise CommandError(f"Cannot open {path}: {error}. If the file is damaged, remove it.") from error
        except OSError as error:
            raise CommandError(str(error)) from error
        finally:
            process.rate_limits.close()


def remove_old_metrics() -> None:
    if settings.METRICS:
        from payments.service.telemetry.files import remove_old_files  # noqa: PLC0415  imports prometheus_client

        remove_old_files()
