"""Lists whose query fails or times out."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError, connection
from psycopg.errors import QueryCanceled

from tests.support.service import Walker


def timeout_error() -> OperationalError:
    """Return the error of a statement that exceeds its time limit."""
    error = OperationalError("canceling statement due to statement timeout")
    error.__cause__ = QueryCanceled()
    return error


@contextmanager
def failing_to_list(error: Exception) -> Iterator[None]:
    """Make every query of payments fail with this error."""

    def fail(execute: Any, statement: str, *rest: Any) -> Any:
        if 'FROM "payments_payment"' in statement:
            raise error
        return execute(statement, *rest)

    with connection.execute_wrapper(fail):
        yield


def assert_error_names_what_to_narrow(base_url: str, key: str) -> None:
    """Ask for a list that cannot be found in time, and behind it, of the same worker, for something else."""
    with Walker(base_url, key) as walker:
        response, body = walker.send("/v2/payments?status=failed")
        other, _ = walker.send("/v2/payments?limit=0")

    problem = json.loads(body)
    assert (response.status, other.status) == (503, 400), body
    assert response.getheader("Retry-After") == "1"
    assert problem["detail"] == ("The query timed out. Narrow createdAt: give both bounds, or closer ones.")
    assert problem["field"] == "createdAt"
