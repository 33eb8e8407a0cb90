"""Payments that stay in the database for all tests of a module."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from pytest_django import DjangoDbBlocker

from tests.support.sql import execute


@contextmanager
def rolled_back(blocker: DjangoDbBlocker) -> Iterator[None]:
    """Allow the database, and undo the writes of the block at its end."""
    with blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


def update_statistics() -> None:
    """Update the statistics of the database, without rows of other tests."""
    if connection.vendor == "postgresql":
        execute("SET CONSTRAINTS ALL IMMEDIATE; REINDEX TABLE payments_payment")
    execute("ANALYZE")
