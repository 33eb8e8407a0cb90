"""Distribute payments over the servers of a Citus cluster."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from payments.management.command import ExplainedCommand
from payments.management.distribution import HAS_CITUS, KNOWS_COORDINATOR, is_true, state, statements


class Command(ExplainedCommand):
    """`distribute_payments [--dry-run]`."""

    help = """
        Distribute payments by organization over the servers of a Citus cluster, those
        that are stored too. Its statements go to stdout, each before it is done.

        While it works nothing should be imported or asked for. Ended half-way, it has
        done a part; run again, it does the rest. Nothing undoes it.

        Exit status: 0 where payments are distributed, 1 where they cannot be.
    """
    examples = (
        "manage.py distribute_payments --dry-run",
        "manage.py distribute_payments",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="write the statements to stdout, and do none of them"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        refuse_where_impossible()
        left = list(statements(state()))
        for statement in left:
            self.stdout.write(f"{statement};")
            if not options["dry_run"]:
                execute(statement)
        if not left:
            self.tell("Payments are distributed already: there is nothing to do.")
        elif options["dry_run"]:
            self.tell("Nothing was changed.", "Next: the same without --dry-run")
        else:
            self.tell("Payments are distributed by organization.", "Next: start the service anew, then docs/citus.md")


def refuse_where_impossible() -> None:
    if connection.vendor != "postgresql":
        raise CommandError("This database is SQLite. Payments are distributed by Citus, an extension of PostgreSQL.")
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError("This database is not migrated. First: manage.py migrate")
    if not is_true(HAS_CITUS):
        raise CommandError(
            "This database has no Citus. First, in this database of each server: CREATE EXTENSION citus (docs/citus.md)"
        )
    if not is_true(KNOWS_COORDINATOR):
        raise CommandError(
            "Citus does not know this server's own address, by which workers find it. "
            "First: SELECT citus_set_coordinator_host('HOST', 5432)"
        )


def execute(statement: str) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    except Error as error:
        reason, _, _ = str(error).partition("\n")  # further lines may repeat a row
        raise CommandError(f"The database failed: {reason}. Run it again: the rest will follow.") from error
