"""The ORM over a database other than the test database."""

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
    """Let this thread's ORM use the database at `url` for the duration of the block.

    pytest-django forbids the test database to tests that do not ask for it; it does not forbid this one.
    """
    usual = connections[DEFAULT_DB_ALIAS]
    settings: dict[str, Any] = {**usual.settings_dict, **database(url)}
    connections[DEFAULT_DB_ALIAS] = other = permitted(settings["ENGINE"])(settings, DEFAULT_DB_ALIAS)
    try:
        yield
    finally:
        other.close()
        connections[DEFAULT_DB_ALIAS] = usual


@cache
def permitted(engine: str) -> type[BaseDatabaseWrapper]:
    """Return a backend without pytest-django's block, which replaces `BaseDatabaseWrapper.ensure_connection`."""
    backend: Any = load_backend(engine).DatabaseWrapper

    class Permitted(backend):  # type: ignore[misc]  # a base that is known only at run time
        def ensure_connection(self) -> None:
            if self.connection is None:
                with self.wrap_database_errors:
                    self.connect()

    return Permitted
