"""Check what the service needs, and start it."""

import errno
import logging
import platform
import socket
import sqlite3
from argparse import ArgumentParser
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, Error, connection
from django.utils.module_loading import import_string

from payments import __version__
from payments.checks import find_server_problem
from payments.conf import conf
from payments.database.migration_state import NOT_MIGRATED, explain_obsolete, read_migration_state
from payments.management.command import PaymentsCommand
from payments.management.failures import explain
from payments.runtime.database_errors import sqlite_code
from payments.runtime.directory import RuntimeDirectoryError
from payments.runtime.process import process
from payments.runtime.rate_limits import FILE_NAME
from payments.runtime.terminal import printable
from payments_site.server import serve

logger = logging.getLogger("payments_site.start")

# The next step if the service cannot listen on its address, by error code.
STEPS = {
    errno.EACCES: "Set PORT to 1024 or higher.",
    errno.EADDRINUSE: "Stop the program that uses it, or set another PORT.",
    errno.EADDRNOTAVAIL: "Set HOST to an IP address of this machine, or to 0.0.0.0 for all of them.",
}

# The next step if the rate limit file cannot be used.
REMOVE = "Remove the damaged file."
CHECK_DIRECTORY = "Check that RUNTIME_DIRECTORY is writable for this user, and that its disk has free space."


class Command(PaymentsCommand):
    """`start`."""

    help = """
        Check the settings, RUNTIME_DIRECTORY and the address, remove the metrics files
        of earlier processes, and start the service for production. Warn if the database
        cannot be used yet, because the service can start before it. The process becomes
        the server: SIGTERM ends it, SIGHUP replaces its workers.

        Exit status: 1 if the service cannot start.
    """
    examples = ("manage.py start", "manage.py start --check")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="end before the service starts")

    def handle(self, *_args: Any, **options: Any) -> None:
        check_address(settings.HOST, port=settings.PORT)
        prepare_runtime_files(remove_metrics=conf.METRICS and not options["check"])
        if (warning := find_database_problem()) and not self.is_silent:
            self.stderr.write(f"Warning: {printable(warning)}", str)
        if options["check"]:
            return
        connection.close()  # a server of PostgreSQL logs connections that end without a word
        versions = f"Django {django.__version__}, Python {platform.python_version()}"
        logger.info("payments-site %s (%s) listens on %s, port %s", __version__, versions, settings.HOST, settings.PORT)
        serve(settings.HOST, port=settings.PORT, workers=settings.WEB_WORKERS, threads=conf.WEB_THREADS)


def check_address(host: str, *, port: int) -> None:
    """Listen on the address for a moment: servers report an error with a long traceback."""
    try:
        version = ip_address(host).version
    except ValueError:
        raise CommandError("HOST must be an IP address, such as 127.0.0.1 or 0.0.0.0.") from None
    try:
        with socket.socket(socket.AF_INET6 if version == 6 else socket.AF_INET) as listener:  # noqa: PLR2004
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of an earlier server may end
            listener.bind((host, port))
            listener.listen()
    except OSError as error:
        step = STEPS.get(error.errno or 0, "Set other values of HOST and PORT.")
        raise CommandError(f"Cannot listen on {host}, port {port}: {error.strerror}. {step}") from error


def prepare_runtime_files(*, remove_metrics: bool) -> None:
    """Create the rate limit file, and remove the metrics files of earlier processes."""
    path = conf.RUNTIME_DIRECTORY / FILE_NAME
    try:
        process.rate_limits.open()
        if remove_metrics:
            import_string("payments.service.telemetry.files.remove_old_files")()  # it imports prometheus_client
    except sqlite3.Error as error:
        is_damaged = sqlite_code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
        raise CommandError(f"Cannot open {path}: {error}. {REMOVE if is_damaged else CHECK_DIRECTORY}") from error
    except RuntimeDirectoryError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}. {CHECK_DIRECTORY}") from error
    finally:
        process.rate_limits.close()


def find_database_problem() -> str | None:
    """Return why the database cannot be used yet, and what to do. It has as much time as for a request.

    :raises CommandError: if an earlier development version made it, or its server is too old
    """
    if connection.vendor == "sqlite":
        path = Path(connection.settings_dict["NAME"])
        if path.parent.is_dir() and not path.exists():  # reading would create it
            return NOT_MIGRATED
    try:
        with process.deadline:
            if connection.vendor == "postgresql" and (problem := find_server_problem()):
                raise CommandError(problem)
            state = read_migration_state(DEFAULT_DB_ALIAS)
    except Error as error:
        return explain(error)
    if state.is_obsolete:
        raise CommandError(explain_obsolete(DEFAULT_DB_ALIAS))
    return NOT_MIGRATED if state.missing else None
