"""Copy a SQLite database to a file."""

import sqlite3
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import connection
from tqdm import tqdm

from payments.database.sqlite.backup import Damaged, back_up
from payments.management.command import INTERRUPTED, ExplainedCommand


class Command(ExplainedCommand):
    """`back_up_database FILE`."""

    help = """
        Copy the SQLite database to a new file, while it is read and written: all that
        was committed when the command began, and nothing of later.

        The copy is verified and then gets its name; a file that exists is never
        overwritten. It holds what the database does, personal data included, and only
        its owner can read it. To restore it, stop the service and put the copy in the
        database's place, without a -wal or -shm of the old one beside it.

        PostgreSQL has pg_dump and pg_basebackup.
    """
    examples = ('manage.py back_up_database "/srv/backups/payments-$(date +%F).sqlite3"',)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="the copy, which does not exist yet")

    def handle(self, *_args: Any, **options: Any) -> None:
        if connection.vendor != "sqlite":
            raise CommandError("This is for SQLite. PostgreSQL is backed up by pg_dump, or by pg_basebackup.")
        database, file = Path(connection.settings_dict["NAME"]), options["file"]
        with tqdm(unit=" pages", disable=None) as bar:

            def show(copied: int, of: int) -> None:
                bar.total = of
                bar.update(copied - bar.n)

            try:
                back_up(database, to=file, on_progress=show)
            except OSError as error:
                raise CommandError(f"{error.filename}: {error.strerror}") from None
            except sqlite3.Error as error:
                raise CommandError(f"{database} could not be copied: {error}") from error
            except Damaged as error:
                raise CommandError(f"{database} is damaged: {error}") from None
            except KeyboardInterrupt:
                raise CommandError("Interrupted; no copy was made.", returncode=INTERRUPTED) from None
        self.tell(f"{file} is made, {file.stat().st_size} bytes.")
