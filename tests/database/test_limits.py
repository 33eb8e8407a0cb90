"""Statements with a shorter time limit than the request."""

import pytest
from django.db import OperationalError, connection, transaction

from payments.database.limits import statement_limit
from payments.runtime.database_errors import is_timeout
from payments.runtime.time_limits import TimeLimit
from tests.support.sql import fetch_value

SHORT = TimeLimit(0.001)  # of 60 seconds

# A statement that runs for minutes.
SLOW = (
    "WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 1000000000)"
    " SELECT count(*) FROM numbers"
)


@pytest.mark.django_db
def test_slow_statement_is_ended_and_the_next_one_runs() -> None:
    with pytest.raises(OperationalError) as raised, statement_limit(SHORT):
        fetch_value(SLOW)

    assert is_timeout(raised.value)
    assert fetch_value("SELECT 1") == 1


@pytest.mark.only("sqlite")
@pytest.mark.django_db
def test_short_statements_are_ended_together() -> None:
    """SQLite counts the steps of a statement over all its runs."""

    def run_statements() -> None:
        for _ in range(1_000_000):
            fetch_value("SELECT 1")

    with pytest.raises(OperationalError) as raised, statement_limit(SHORT):
        run_statements()

    assert is_timeout(raised.value)


@pytest.mark.django_db(transaction=True)
def test_limit_ends_with_its_block() -> None:
    def limit() -> object:
        return fetch_value("SHOW statement_timeout") if connection.vendor == "postgresql" else None

    before = limit()
    with transaction.atomic():
        with statement_limit(TimeLimit(1)):
            inside = limit()
        after = limit()

    assert (after, limit()) == (before, before)
    assert inside == (None if connection.vendor == "sqlite" else "1min")
