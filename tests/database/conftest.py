"""Fixtures for tests of the database package."""

from collections.abc import Iterator

import pytest
from django.db import connection

from payments.database.prepared import PreparedStatements


@pytest.fixture
def statements() -> Iterator[PreparedStatements]:
    """The prepared statements of a new connection to PostgreSQL."""
    connection.close()
    connection.ensure_connection()
    yield PreparedStatements(connection.connection)
    connection.close()
