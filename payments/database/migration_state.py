"""Which migrations of this release a database lacks.

It uses `MigrationLoader` and `MigrationRecorder`, which Django does not document. Django's only public way to compare
migrations is a command, `migrate --check`.
"""

import sqlite3
from functools import cache

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg.errors import UndefinedColumn, UndefinedTable

from payments.runtime.database_errors import sqlite_code

NOT_MIGRATED = "The database is not migrated. Run manage.py migrate."


def missing_migrations(using: str) -> list[str]:
    """Return the names of this release's last migrations that a database lacks."""
    applied = set(MigrationRecorder(connections[using]).applied_migrations())
    return sorted(".".join(migration) for migration in latest_migrations() - applied)


@cache
def latest_migrations() -> set[tuple[str, str]]:
    """Return each application's last migration, which depends on all earlier ones."""
    return set(MigrationLoader(None).graph.leaf_nodes())


def is_unmigrated(error: BaseException) -> bool:
    """Return whether a statement failed because a migration is missing.

    SQLite has no code of its own for a missing table or column, so any error of a statement leads to a look at the
    migrations.
    """
    is_possible = isinstance(error.__cause__, UndefinedColumn | UndefinedTable)
    return (is_possible or sqlite_code(error) == sqlite3.SQLITE_ERROR) and lacks_migrations()


def lacks_migrations() -> bool:
    try:
        return bool(missing_migrations(DEFAULT_DB_ALIAS))
    except Error:  # the database itself has failed
        return False
