"""Django's development server."""

from typing import Any

from django.contrib.staticfiles.management.commands import runserver
from django.db import connection


class Command(runserver.Command):
    """`runserver [ADDRESS:PORT]`: an unusable database ends the command before the server's threads start."""

    def handle(self, *args: Any, **options: Any) -> None:
        connection.ensure_connection()
        super().handle(*args, **options)
