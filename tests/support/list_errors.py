"""List queries that fail or time out."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import psycopg
from django.db import Error, OperationalError, connection
from psycopg.errors import QueryCanceled

from tests.support.service import Walker

TIMEOUT = "The query timed out. Narrow it: send createdAt[gte] and createdAt[lt], for example for one month or one day."


def timeout_error() -> Error:
    """Return the error of a statement that exceeds its time limit."""
    return caused_by(QueryCanceled("canceling statement due to statement timeout"))


def caused_by(cause: Exception, kind: type[Error] = OperationalError) -> Error:
    """Return an error as Django raises it: of its own class, caused by the driver's error."""
    error = kind(str(cause))
    error.__cause__ = cause
    return error


@contextmanager
def failing_list_queries(error: Exception) -> Iterator[None]:
    """Make every query of payments fail with this error."""
    with failing_queries("payments_payment", error):
        yield


@contextmanager
def failing_queries(table: str, error: Exception, *, clause: str = "FROM") -> Iterator[None]:
    """Make every query of a table fail with this error; `clause` is the word before its name."""
    with failing_statements(f'{clause} "{table}"', error):
        yield


@contextmanager
def failing_statements(part: str, error: Exception, *, times: float = inf) -> Iterator[None]:
    """Make statements that contain `part` fail with this error, so many times."""
    failures = 0

    def fail(execute: Any, statement: str, *rest: Any) -> Any:
        nonlocal failures
        if part in statement and failures < times:
            failures += 1
            raise error
        return execute(statement, *rest)

    with connection.execute_wrapper(fail):
        yield


@contextmanager
def slow_payments(administrator: psycopg.Connection[Any], *, user: str) -> Iterator[None]:
    """Make PostgreSQL take a minute for each row of payments that `user` reads, until the block ends."""
    administrator.execute("ALTER TABLE payments_payment RENAME TO payments")
    administrator.execute("CREATE VIEW payments_payment AS SELECT * FROM payments WHERE pg_sleep(60) IS NOT NULL")
    administrator.execute(f"GRANT SELECT ON payments_payment TO {user}")
    try:
        yield
    finally:
        administrator.execute("DROP VIEW payments_payment")
        administrator.execute("ALTER TABLE payments RENAME TO payments_payment")


def assert_timeout_names_created_at(base_url: str, key: str) -> None:
    """Request a list whose query times out. The same worker must still respond to the next request."""
    with Walker(base_url, key) as walker:
        response, body = walker.send("/v2/payments?status=failed")
        next_response, _ = walker.send("/v2/payments?limit=0")

    problem = json.loads(body)
    assert (response.status, next_response.status) == (503, 400), body
    assert response.getheader("Retry-After") == "1"
    assert problem["detail"] == TIMEOUT
    assert problem["field"] == "createdAt"
