"""The line that a command prints for an operator's mistake, a failure of the database or an unusable file.

A failure of the database is classified by its code: SQLSTATE on PostgreSQL, `sqlite_errorcode` on SQLite. The text of
the database is the reason; the code determines the next step.
"""

import errno
import sqlite3

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from psycopg import errors

from payments.database.migration_state import is_unmigrated
from payments.runtime.database_errors import is_outage, sqlite_code

CHECK_SERVER = "Check DATABASE_URL, and that the database server runs."
CHECK_DISK = "Check the free space and the state of the disk, and the maximum size of files."
CHECK_FILE = "Check the path in DATABASE_URL. This user must be able to read and write the file and its directory."
RESTORE = "Check the path in DATABASE_URL. If the file is damaged, restore a backup."
MIGRATE = "Run manage.py migrate."
REPEAT = "Other transactions changed the same payments. Run the command again."

# The next step by SQLite's primary error code.
SQLITE_STEPS = {
    sqlite3.SQLITE_BUSY: "Another process writes. Run the command again later.",
    sqlite3.SQLITE_CANTOPEN: CHECK_FILE,
    sqlite3.SQLITE_CORRUPT: RESTORE,
    sqlite3.SQLITE_FULL: CHECK_DISK,
    sqlite3.SQLITE_IOERR: CHECK_DISK,
    sqlite3.SQLITE_NOTADB: RESTORE,
    sqlite3.SQLITE_READONLY: CHECK_FILE,
}

# The next step by SQLSTATE. Errors of a new connection have none: libpq reports only a text.
POSTGRESQL_STEPS: dict[str | None, str] = {
    None: CHECK_SERVER,
    errors.AdminShutdown.sqlstate: CHECK_SERVER,
    errors.CrashShutdown.sqlstate: CHECK_SERVER,
    errors.DeadlockDetected.sqlstate: REPEAT,
    errors.DiskFull.sqlstate: "Free disk space on the database server.",
    errors.InsufficientPrivilege.sqlstate: "Grant the privilege to the user in DATABASE_URL, or use the owner.",
    errors.ReadOnlySqlTransaction.sqlstate: "Check that DATABASE_URL leads to the primary, and that it accepts writes.",
    errors.SerializationFailure.sqlstate: REPEAT,
}


# The next step if a file or the output cannot be used.
FILE_STEPS = {
    errno.EACCES: "Allow this user to use it.",
    errno.EDQUOT: "Free disk space.",
    errno.ENOSPC: "Free disk space.",
    errno.EPERM: "Allow this user to use it.",
    errno.EROFS: "Make the disk writable.",
}


def explain(error: Exception) -> str | None:
    """Return what happened and what to do next, in one line; None for a bug, which needs a traceback."""
    if isinstance(error, ImproperlyConfigured):
        return str(error)
    if isinstance(error, OSError):
        step = FILE_STEPS.get(error.errno or 0)
        return f"{error.filename or 'stdout'}: {error.strerror}. {step}" if step else None
    return f"The database failed: {describe_failure(error)}" if is_outage(error) else None


def describe_failure(error: Exception) -> str:
    """Return the reason that the database gives, and the next step if there is one.

    SQLite names no file, so the path of the file precedes its text.
    """
    text = first_line(error).rstrip(".")
    if sqlite_code(error) is not None:
        text = f"{connection.settings_dict['NAME']}: {text}"
    step = MIGRATE if is_unmigrated(error) else next_step(error)
    return f"{text}. {step}" if step else text


def first_line(error: Exception) -> str:
    """Return the first line of a database error. Further lines may contain values of a row."""
    line, _, _ = str(error).partition("\n")
    return line


def next_step(error: Exception) -> str | None:
    if (code := sqlite_code(error)) is not None:
        return SQLITE_STEPS.get(code)
    cause = error.__cause__
    return POSTGRESQL_STEPS.get(cause.sqlstate) if isinstance(cause, psycopg.Error) else None
