"""What an error of the database's says: that it is away, or that it was asked for too much."""

from django.db import DatabaseError, InterfaceError, InternalError, OperationalError
from psycopg.errors import InsufficientPrivilege, QueryCanceled, UndefinedColumn, UndefinedTable

# What PostgreSQL says before a migration, or to a user who may not see what it made.
NOT_MIGRATED = (InsufficientPrivilege, UndefinedColumn, UndefinedTable)


def is_outage(exception: BaseException | None) -> bool:
    """Tell whether the database, or what was done to it, is at fault rather than what it was asked.

    A file that is damaged is none of the named kinds on SQLite; there a table that is missing, as it is before a
    migration, is no other kind than a lock.
    """
    return (
        isinstance(exception, InterfaceError | OperationalError | InternalError)
        or type(exception) is DatabaseError
        or isinstance(exception.__cause__ if exception else None, NOT_MIGRATED)
    )


def ran_out_of_time(exception: Exception) -> bool:
    """Tell whether the database went on with a statement for longer than a request may, and was made to end it."""
    return isinstance(exception.__cause__, QueryCanceled) or str(exception) == "interrupted"
