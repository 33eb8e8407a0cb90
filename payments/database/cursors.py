"""Cursors of the ORM that report their statements to the instrumentation hooks."""

from functools import partial
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from payments.runtime.process import process


class InstrumentedCursor(CursorWrapper):
    """Runs each statement inside the instrumentation hooks."""

    def execute(self, sql: Any, params: Any = None) -> Any:
        return process.hooks.run_statement(str(sql), partial(super().execute, sql, params))

    def executemany(self, sql: Any, param_list: Any) -> Any:
        return process.hooks.run_statement(str(sql), partial(super().executemany, sql, param_list))


class InstrumentedDatabaseWrapper(BaseDatabaseWrapper):
    """A database backend whose cursors are instrumented if a hook is registered.

    `make_cursor` is a private method of Django's backends: Django documents no other way to replace the cursor class.
    """

    def make_cursor(self, cursor: Any) -> CursorWrapper:
        return InstrumentedCursor(cursor, self) if process.hooks.registered else super().make_cursor(cursor)
