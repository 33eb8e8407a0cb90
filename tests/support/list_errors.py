"""List queries that fail or time out."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

from django.db import OperationalError, connection
from psycopg.errors import QueryCanceled

from tests.support.service import Walker
from tests.support.waiting import wait_until

TIMEOUT = "The query timed out. Narrow it: send createdAt[gte] and createdAt[lt], for example for one month or one day."


def timeout_error() -> OperationalError:
    """Return the error of a statement that exceeds its time limit."""
    error = OperationalError("canceling statement due to statement timeout")
    error.__cause__ = QueryCanceled()
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


def assert_timeout_names_created_at(base_url: str, key: str) -> None:
    """Request a list whose query times out. The same worker must still respond to the next request."""
    with Walker(base_url, key) as walker:

        def timeout() -> Any:
            """Return the problem, or None if the request's deadline came before the server's error."""
            response, body = walker.send("/v2/payments?status=failed")
            assert (response.status, response.getheader("Retry-After")) == (503, "1"), body
            problem = json.loads(body)
            return problem if "field" in problem else None

        problem = wait_until(timeout)
        next_response, _ = walker.send("/v2/payments?limit=0")

    assert (problem["detail"], problem["field"]) == (TIMEOUT, "createdAt")
    assert next_response.status == 400
