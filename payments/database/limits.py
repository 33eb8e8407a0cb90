"""Limits for parts of a request that must not make it slow: they end early, and the rest of the request goes on."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper

from payments.runtime import time_limits
from payments.runtime.database_errors import is_timeout
from payments.runtime.process import process
from payments.runtime.time_limits import TimeLimit

# Never wait for locks or for the disk.
NO_WAITING = {"lock_timeout": "1ms", "synchronous_commit": "off"}


@contextmanager
def optional_statements(limit: TimeLimit = time_limits.OPTIONAL_STATEMENT) -> Iterator[None]:
    """Run statements that a page can do without. If one takes too long, leave the block without an error."""
    try:
        with statement_limit(limit):
            yield
    except OperationalError as error:
        if not is_timeout(error):
            raise


@contextmanager
def statement_limit(limit: TimeLimit) -> Iterator[None]:
    """Limit each statement of the block, on PostgreSQL, or all together, on SQLite. The block must not write.

    :raises OperationalError: for such a statement; `is_timeout` is true for it
    """
    if connection.vendor == "postgresql":
        with changed_settings({"statement_timeout": limit.milliseconds}):
            yield
        return
    connection.ensure_connection()  # within the block, it would have the limits of a request
    with process.deadline.shortened(limit.seconds):
        yield


@contextmanager
def transaction_without_waiting() -> Iterator[None]:
    """Open a transaction that does not wait for other writers and, on PostgreSQL, not for the disk."""
    if connection.vendor == "postgresql":
        with changed_settings(NO_WAITING | {"statement_timeout": time_limits.LAST_USE.milliseconds}):
            yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        (milliseconds,) = cursor.fetchone()
        cursor.execute("PRAGMA busy_timeout = 0")
        try:
            with transaction.atomic():
                yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {milliseconds}")


@contextmanager
def changed_settings(values: dict[str, str]) -> Iterator[None]:
    """Open a transaction of PostgreSQL with other settings."""
    is_savepoint = connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        previous = change_settings(cursor, values)
        yield
        if is_savepoint:  # the settings end with the transaction: they also count for its commit
            change_settings(cursor, previous)


def change_settings(cursor: CursorWrapper, values: dict[str, str]) -> dict[str, str]:
    """Change settings of PostgreSQL for this transaction, and return their previous values."""
    columns = ", ".join(["current_setting(%s), set_config(%s, %s, true)"] * len(values))
    cursor.execute(f"SELECT {columns}", [part for name, value in values.items() for part in (name, name, value)])
    return dict(zip(values, cursor.fetchone()[::2], strict=True))
