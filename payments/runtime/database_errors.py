"""Classify database errors by their codes: SQLSTATE on PostgreSQL, `sqlite_errorcode` on SQLite."""

import sqlite3

from django.db import DatabaseError, InterfaceError, InternalError, OperationalError
from psycopg.errors import (
    DeadlockDetected,
    InsufficientPrivilege,
    LockNotAvailable,
    QueryCanceled,
    ReadOnlySqlTransaction,
    SerializationFailure,
    UndefinedColumn,
    UndefinedTable,
)

# PostgreSQL's errors before a migration, or if the database user lacks a privilege on a table.
UNUSABLE_TABLE = (InsufficientPrivilege, UndefinedColumn, UndefinedTable)

# SQLite's extended error codes have their primary code in the lowest byte.
PRIMARY_CODE = 0xFF


def is_outage(error: BaseException | None) -> bool:
    """Return whether the database is at fault, rather than the statement.

    This includes a missing migration, a damaged file and a timeout. Django raises a plain DatabaseError for a damaged
    SQLite file, and an OperationalError for a table that SQLite lacks. A plain DatabaseError without a cause is its
    own: another request has deleted the row to be updated.
    """
    cause = error.__cause__ if error else None
    return (
        isinstance(error, InterfaceError | OperationalError | InternalError)
        or (type(error) is DatabaseError and cause is not None)
        or isinstance(cause, UNUSABLE_TABLE)
    )


def is_timeout(error: BaseException) -> bool:
    """Return whether a statement took too long: the server ended it or, on SQLite, the progress handler."""
    return isinstance(error.__cause__, QueryCanceled) or sqlite_code(error) == sqlite3.SQLITE_INTERRUPT


def is_conflict(error: BaseException | None) -> bool:
    """Return whether PostgreSQL ended one of several transactions because of the others. It can be repeated."""
    return error is not None and isinstance(error.__cause__, DeadlockDetected | SerializationFailure)


def is_locked(error: BaseException) -> bool:
    """Return whether a statement waited too long for another writer's lock."""
    return isinstance(error.__cause__, LockNotAvailable) or sqlite_code(error) == sqlite3.SQLITE_BUSY


def is_read_only(error: BaseException) -> bool:
    return isinstance(error.__cause__, ReadOnlySqlTransaction) or sqlite_code(error) == sqlite3.SQLITE_READONLY


def sqlite_code(error: BaseException) -> int | None:
    """Return SQLite's primary error code of a Django database error, or of SQLite's own; None on PostgreSQL."""
    cause = error if isinstance(error, sqlite3.Error) else error.__cause__
    code = getattr(cause, "sqlite_errorcode", None)
    return None if code is None else code & PRIMARY_CODE
