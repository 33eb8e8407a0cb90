"""Shorter time limits for statements that a request can do without."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from payments.database.sqlite.base import AbortableConnection
from payments.runtime.process import process


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit each statement of the block, on PostgreSQL, or all together, on SQLite. The block must not write.

    :raises OperationalError: a statement took longer; see `is_timeout`
    """
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            previous = change_settings(cursor, {"statement_timeout": f"{seconds * 1000:.0f}ms"})
            yield
            change_settings(cursor, previous)  # otherwise it would remain after this savepoint
        return
    connection.ensure_connection()
    deadline = process.watchdog.new_deadline(seconds_max=seconds)
    deadline.register(AbortableConnection(connection.connection))
    with deadline:
        yield


def change_settings(cursor: CursorWrapper, values: dict[str, str]) -> dict[str, str]:
    """Change settings of PostgreSQL for this transaction, and return their previous values."""
    columns = ", ".join(["current_setting(%s), set_config(%s, %s, true)"] * len(values))
    cursor.execute(f"SELECT {columns}", [part for name, value in values.items() for part in (name, name, value)])
    return dict(zip(values, cursor.fetchone()[::2], strict=True))
