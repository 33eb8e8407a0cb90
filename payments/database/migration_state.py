"""How a database differs from what this code needs: its migrations, and its encoding.

It uses `MigrationLoader` and `MigrationRecorder`, which Django does not document. Django's only public way to compare
migrations is a command, `migrate --check`.
"""

import sqlite3
from functools import cache
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg.errors import UndefinedColumn, UndefinedTable

from payments.runtime.database_errors import sqlite_code

NOT_MIGRATED = "The database is not migrated. Run manage.py migrate."


class MigrationState(NamedTuple):
    """The names of the last migrations that a database lacks, and whether an earlier development version made it.

    Until the first release, a change of the schema edits the first migration and renames it. So a database with a
    migration that this code does not have cannot be migrated.
    """

    missing: list[str]
    is_obsolete: bool


def read_migration_state(using: str) -> MigrationState:
    applied = set(MigrationRecorder(connections[using]).applied_migrations())
    loader = migrations_of_this_code()
    # The last migration of an application depends on all earlier ones.
    missing = sorted(".".join(migration) for migration in set(loader.graph.leaf_nodes()) - applied)
    return MigrationState(missing, any(app == "payments" for app, _ in applied - loader.disk_migrations.keys()))


@cache
def migrations_of_this_code() -> MigrationLoader:
    return MigrationLoader(None)


def explain_obsolete(using: str) -> str:
    connection = connections[using]
    step = "Delete this file" if connection.vendor == "sqlite" else "Create a new database"
    name = connection.settings_dict["NAME"]
    return f"An earlier development version made the database {name}. {step}, and import the payments again."


def explain_encoding(using: str) -> str | None:
    """Return what to do about a database that cannot store every text; None if it can."""
    connection = connections[using]
    if connection.vendor == "sqlite":
        return None
    connection.ensure_connection()
    encoding = connection.connection.info.parameter_status("server_encoding")
    create = "createdb --template template0 --encoding UTF8 --locale C.UTF-8 NAME"
    problem = f"The database's encoding is {encoding}, it must be UTF8. Create another: {create}"
    return None if encoding == "UTF8" else problem


def is_unmigrated(error: BaseException) -> bool:
    """Return whether a statement failed because a migration is missing.

    SQLite has no code of its own for a missing table or column, so any error of a statement leads to a look at the
    migrations.
    """
    is_possible = isinstance(error.__cause__, UndefinedColumn | UndefinedTable)
    if not (is_possible or sqlite_code(error) == sqlite3.SQLITE_ERROR):
        return False
    try:
        return bool(read_migration_state(DEFAULT_DB_ALIAS).missing)
    except Error:  # the database itself has failed
        return False
