"""Copy a SQLite database to a file."""

import sqlite3
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import connection
from tqdm import tqdm

from payments.database.sqlite.backup import Damaged, back_up
from payments.management.command import INTERRUPTED, PaymentsCommand


class Command(PaymentsCommand):
    """`back_up_database FILE`."""

    help = """
        Copy the SQLite database to a new file, while the service reads and writes it.
        The copy contains everything that was committed when the command started.

        FILE appears after the copy is complete and verified. An existing file is never
        overwritten. The copy contains personal data, so only its owner can read it. To
        restore it, stop the service, remove the database with its -wal and -shm files,
        and put the copy in its place.

        For PostgreSQL, use pg_dump or pg_basebackup.
    """
    examples = ('manage.py back_up_database "/srv/backups/payments-$(date +%F).sqlite3"',)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", help="the file to create")

    def handle(self, *_args: Any, **options: Any) -> None:
        if connection.vendor != "sqlite":
            raise CommandError("This command copies SQLite databases. For PostgreSQL, use pg_dump or pg_basebackup.")
        database, file = Path(connection.settings_dict["NAME"]), options["file"]
        with tqdm(unit=" pages", disable=None) as bar:

            def show_progress(copied: int, total: int) -> None:
                bar.total = total
                bar.update(copied - bar.n)

            try:
                back_up(database, to=file, on_progress=show_progress)
            except OSError as error:
                raise CommandError(f"{error.filename}: {error.strerror}") from None
            except sqlite3.Error as error:
                raise CommandError(f"Cannot copy {database}: {error}") from error
            except Damaged as error:
                raise CommandError(f"{database} is damaged: {error}") from None
            except KeyboardInterrupt:
                raise CommandError("Interrupted. No copy was created.", returncode=INTERRUPTED) from None
        self.write_success(f"Created {file}, {file.stat().st_size} bytes.")
