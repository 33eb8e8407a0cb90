"""Show the versions of the service and of what it runs on."""

import platform
from typing import Any

import django
from django.core.management.base import CommandError
from django.db import Error, connection

from payments import __version__
from payments.management.command import PaymentsCommand
from payments.management.failures import describe_failure
from payments.runtime.process import process


class Command(PaymentsCommand):
    """`show_version`."""

    help = "Print the versions. The exit status is 1 if the database's version is unknown."
    examples = ("manage.py show_version",)

    def handle(self, *_args: Any, **_options: Any) -> None:
        failure, database = None, "unreachable"
        try:
            with process.deadline:
                database = ".".join(map(str, connection.get_database_version()))
        except Error as error:
            failure = error
        versions = f"Django {django.__version__}, Python {platform.python_version()}"
        self.stdout.write(f"payments-site {__version__} ({versions}, {connection.display_name} {database})")
        if failure:
            raise CommandError(f"The database failed: {describe_failure(failure)}") from failure
