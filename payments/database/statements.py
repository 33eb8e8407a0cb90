"""SELECT statements declared with the ORM and compiled once for each shape, not once for each request.

Compiling the SQL of a page takes the ORM longer than PostgreSQL takes to run it, and the result is always the same:
requests of one shape differ only in their values. A statement has placeholders for them, bound when it runs. The SQL
comes from QuerySets, so it follows the models and migrations.
"""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, QuerySet
from django.db.models.sql.compiler import SQLCompiler
from psycopg import ClientCursor

from payments.database.runners import can_run_directly, driver_cursor, is_observed, open_connection, prepared_statements
from payments.runtime.process import process

RowT = TypeVar("RowT", bound=tuple[Any, ...])


class Placeholder(Expression):
    """A named placeholder, bound when the statement runs. The database gets the value as it is."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[()]]:
        return f"%({self.name})s", ()


class Statement(Generic[RowT]):
    """A SELECT statement made of one or more QuerySets of tuples, or of SQL, joined by UNION ALL.

    Values are returned as the database driver returns them: the ORM's converters are not applied.

    `is_planned_each_time`: PostgreSQL plans the statement with its values each time, because the best index depends on
    them.
    `around`: SQL that reads these rows, with `{rows}` for their statement. The rows of the whole are returned.

    :raises ValueError: a QuerySet has a value that is not a placeholder, or a column that needs a converter
    """

    def __init__(
        self, *queries: QuerySet[Any, RowT] | str, is_planned_each_time: bool = False, around: str = "{rows}"
    ) -> None:
        parts = [
            query if isinstance(query, str) else compile_queryset(query, is_read_by_sql=around != "{rows}")
            for query in queries
        ]
        union = " UNION ALL ".join(f"SELECT * FROM ({part}) AS part" for part in parts)
        self.sql = around.replace("{rows}", union if len(parts) > 1 else parts[0])
        self.is_planned_each_time = is_planned_each_time

    def rows(self, values: Mapping[str, Any], using: str = DEFAULT_DB_ALIAS) -> list[RowT]:
        """Run the statement on the database with this alias and return its rows."""
        if process.hooks.registered:
            return process.hooks.run_statement(self.sql, lambda: self.run(values, using))
        return self.run(values, using)

    def run(self, values: Mapping[str, Any], using: str) -> list[RowT]:
        connection = open_connection(using)
        with connection.wrap_database_errors:
            if is_observed(connection):
                return fetch(connection.cursor(), self.sql, values)  # Django's cursor calls query logs and wrappers
            if connection.vendor == "postgresql":
                return self.run_on_postgresql(connection, values)
            return fetch(driver_cursor(connection), self.sql, values)

    def run_on_postgresql(self, connection: BaseDatabaseWrapper, values: Mapping[str, Any]) -> list[RowT]:
        if self.is_planned_each_time:
            return fetch(ClientCursor(connection.connection), self.sql, values)
        if can_run_directly(connection):
            return cast("list[RowT]", prepared_statements(connection).rows(self.sql, values))
        return fetch(connection.cursor(), self.sql, values)  # Django's cursor starts the transaction


def compile_queryset(queryset: QuerySet[Any, Any], *, is_read_by_sql: bool = False) -> str:
    compiler = queryset.query.get_compiler(connection=connections[DEFAULT_DB_ALIAS])
    sql, parameters = cast("tuple[str, tuple[Any, ...]]", compiler.as_sql())
    needs_converter = not is_read_by_sql and compiler.get_converters([column for column, _, _ in compiler.select])
    if parameters or needs_converter:
        raise ValueError(f"Only placeholders and columns without a converter can be compiled: {sql}")
    return sql


def fetch(cursor: Any, sql: str, values: Mapping[str, Any]) -> list[Any]:
    cursor.execute(sql, values)
    rows: list[Any] = cursor.fetchall()
    return rows
