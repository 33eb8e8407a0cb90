"""Cursors of the ORM's own, whose statements observers are told of."""

from functools import partial
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from payments.runtime import hooks


class ObservedCursor(CursorWrapper):
    """Runs each statement where observers can tell for how long."""

    def execute(self, sql: Any, params: Any = None) -> Any:
        return hooks.run_statement(str(sql), partial(super().execute, sql, params))

    def executemany(self, sql: Any, param_list: Any) -> Any:
        return hooks.run_statement(str(sql), partial(super().executemany, sql, param_list))


class ObservedCursors(BaseDatabaseWrapper):
    """A database whose cursors are observed, where anybody observes."""

    def make_cursor(self, cursor: Any) -> CursorWrapper:
        return ObservedCursor(cursor, self) if hooks.observers else super().make_cursor(cursor)
