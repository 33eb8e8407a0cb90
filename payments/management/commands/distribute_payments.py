"""Distribute payments over the servers of a Citus cluster."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import Error, connection

from payments.database.migration_state import NOT_MIGRATED, read_migration_state
from payments.management.command import PaymentsCommand
from payments.management.distribution import HAS_CITUS, HAS_COORDINATOR, is_true, read_state, remaining_statements
from payments.management.failures import first_line


class Command(PaymentsCommand):
    """`distribute_payments [--dry-run]`."""

    help = """
        Distribute all payments by organization over the servers of a Citus cluster. The
        command prints each SQL statement to stdout before it runs it.

        Stop the service and all imports first. After an interruption, run the command
        again for the rest. The command cannot undo the distribution.

        Exit status: 0 if the payments are distributed, otherwise 1.
    """
    examples = ("manage.py distribute_payments --dry-run", "manage.py distribute_payments")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only print the statements; change nothing")

    def handle(self, *_args: Any, **options: Any) -> None:
        check_preconditions()
        remaining = list(remaining_statements(read_state()))
        for statement in remaining:
            self.stdout.write(f"{statement};")
            if not options["dry_run"]:
                execute(statement)
        if not remaining:
            self.write_success("Payments are already distributed. Nothing was changed.")
        elif options["dry_run"]:
            self.write_success("Nothing was changed.", "Next: run the same command without --dry-run")
        else:
            self.write_success("Payments are distributed by organization.", "Next: start the service (docs/citus.md)")


def check_preconditions() -> None:
    """Check that the database can distribute payments."""
    if connection.vendor != "postgresql":
        raise CommandError("This database is SQLite. Only PostgreSQL with Citus can distribute payments.")
    if read_migration_state(connection.alias).missing:
        raise CommandError(NOT_MIGRATED)
    if not is_true(HAS_CITUS):
        raise CommandError(
            "This database has no Citus. Next, in this database on every server: CREATE EXTENSION citus (docs/citus.md)"
        )
    if not is_true(HAS_COORDINATOR):
        raise CommandError(
            "Citus does not know the address at which workers reach this server. "
            "Next: SELECT citus_set_coordinator_host('HOST', 5432)"
        )


def execute(statement: str) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    except Error as error:
        raise CommandError(f"The database failed: {first_line(error)}. Run the command again for the rest.") from error
