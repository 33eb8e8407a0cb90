"""How statements run on a connection of Django: prepared, or by the driver's cursor.

Each thread has its own connections, so nothing here is shared between threads.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from payments.database.prepared import PreparedStatements

Runner = TypeVar("Runner")


def open_connection(using: str) -> BaseDatabaseWrapper:
    """Return the thread's connection to a database, open and checked once for each request."""
    connection = connections[using]
    if not connection.health_check_done:  # type: ignore[attr-defined]  # missing in the stubs
        connection.close_if_health_check_failed()
    if connection.connection is None:
        connection.ensure_connection()
    return connection


def is_observed(connection: BaseDatabaseWrapper) -> bool:
    """Return whether a query log or a wrapper needs each statement. Only Django's cursor calls them."""
    return bool(connection.queries_logged or connection.execute_wrappers)


def prepared_statements(connection: BaseDatabaseWrapper) -> PreparedStatements:
    """Return the prepared statements of a connection to PostgreSQL."""
    return cached_runner(connection, PreparedStatements)


def can_run_directly(connection: BaseDatabaseWrapper) -> bool:
    """Return whether a statement can run without a cursor. A cursor begins the transaction with its first statement."""
    return connection.autocommit or connection.connection.pgconn.transaction_status == TransactionStatus.INTRANS


def driver_cursor(connection: BaseDatabaseWrapper) -> Any:
    """Return the driver's cursor. Opening the ORM's cursor takes as long as a small query."""
    return cached_runner(connection, lambda _: connection.cursor().cursor)


def cached_runner(connection: BaseDatabaseWrapper, make: Callable[[Any], Runner]) -> Runner:
    """Return the connection's cached cursor or prepared statements. Call `make` again after a reconnect.

    `make` gets the driver's connection.
    """
    runner: Any = vars(connection).get("statement_runner")
    if runner is None or runner.connection is not connection.connection:
        runner = vars(connection)["statement_runner"] = make(connection.connection)
    result: Runner = runner
    return result
