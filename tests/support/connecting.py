"""Connect the ORM to another database than the test database."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend

from payments_site.environment import database


@contextmanager
def connected_to(url: str) -> Iterator[None]:
    """Make this thread's ORM use the database at `url` within the block.

    pytest-django blocks the test database for tests that do not request it. It does not block this connection.
    """
    test_connection = connections[DEFAULT_DB_ALIAS]
    settings: dict[str, Any] = {**test_connection.settings_dict, **database(url)}
    connections[DEFAULT_DB_ALIAS] = connection = unblocked(settings["ENGINE"])(settings, DEFAULT_DB_ALIAS)
    try:
        yield
    finally:
        connection.close()
        connections[DEFAULT_DB_ALIAS] = test_connection


@cache
def unblocked(engine: str) -> type[BaseDatabaseWrapper]:
    """Return a backend that pytest-django does not block: it replaces `BaseDatabaseWrapper.ensure_connection`."""
    backend: Any = load_backend(engine).DatabaseWrapper

    class Unblocked(backend):  # type: ignore[misc]  # the base is known only at run time
        def ensure_connection(self) -> None:
            if self.connection is None:
                with self.wrap_database_errors:
                    self.connect()

    return Unblocked
