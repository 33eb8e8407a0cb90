"""Statements that the ORM declares, compiled once for each shape instead of once for each request.

The ORM takes longer to write the SQL of a page than PostgreSQL takes to answer it, and it writes the same every time:
requests of one shape differ in values alone. Those are left open, as slots.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, QuerySet
from django.db.models.sql.compiler import SQLCompiler
from psycopg import ClientCursor

from payments.database.prepared import PreparedStatements
from payments.runtime.process import process

Row = TypeVar("Row", bound=tuple[Any, ...])
Kept = TypeVar("Kept")


class Slot(Expression):
    """A value that is named when the statement is declared, and given when it is run, as the database takes it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[()]]:
        return f"%({self.name})s", ()


class Statement(Generic[Row]):
    """What QuerySets of tuples ask for, the rows of one behind those of the other.

    Columns are given as they come: no converter of the ORM's is applied.

    `is_planned_anew` has PostgreSQL see the values before it plans, each time: which index is best depends on them.
    Unless `provided` finds something there are no rows.

    :raises ValueError: where a QuerySet holds a value that is not in a slot, or a column that needs a converter
    """

    def __init__(
        self,
        *querysets: QuerySet[Any, Row],
        is_planned_anew: bool = False,
        provided: QuerySet[Any, Any] | None = None,
    ) -> None:
        parts = list(map(compiled, querysets))
        joined = " UNION ALL ".join(f"SELECT * FROM ({part}) AS part" for part in parts)
        self.sql = joined if len(parts) > 1 else parts[0]
        if provided is not None:
            self.sql = f"SELECT * FROM ({self.sql}) AS found WHERE EXISTS ({compiled(provided)})"
        self.is_planned_anew = is_planned_anew

    def rows(self, using: str = DEFAULT_DB_ALIAS, /, **values: Any) -> list[Row]:
        """Ask the database of that alias, once."""
        if process.hooks.registered:
            return process.hooks.run_statement(self.sql, lambda: self.asked(using, values))
        return self.asked(using, values)

    def asked(self, using: str, values: Mapping[str, Any]) -> list[Row]:
        connection = connections[using]
        connection.close_if_health_check_failed()
        connection.ensure_connection()
        with connection.wrap_database_errors:
            if connection.queries_logged or connection.execute_wrappers:
                return fetched(connection.cursor(), self.sql, values)  # whoever watches the queries sees this one
            if connection.vendor != "postgresql":
                return fetched(kept(connection, open_cursor), self.sql, values)
            if self.is_planned_anew:
                return fetched(ClientCursor(connection.connection), self.sql, values)
            statements = kept(connection, prepared_statements)
            if statements.can_run():
                return cast("list[Row]", statements.rows(self.sql, values))
            return fetched(connection.cursor(), self.sql, values)


def compiled(queryset: QuerySet[Any, Any]) -> str:
    compiler = queryset.query.get_compiler(connection=connections[DEFAULT_DB_ALIAS])
    sql, parameters = cast("tuple[str, tuple[Any, ...]]", compiler.as_sql())
    if parameters or compiler.get_converters([column for column, _, _ in compiler.select]):
        raise ValueError(f"Not a statement of slots and plain columns: {sql}")
    return sql


def fetched(cursor: Any, sql: str, values: Mapping[str, Any]) -> list[Any]:
    cursor.execute(sql, values)
    rows: list[Any] = cursor.fetchall()
    return rows


def kept(connection: BaseDatabaseWrapper, make: Callable[[BaseDatabaseWrapper], Kept]) -> Kept:
    """Return what statements are run with, made once for an open connection and kept beside it."""
    found: Any = vars(connection).get("kept")
    if found is None or found.connection is not connection.connection:
        found = vars(connection)["kept"] = make(connection)
    return cast("Kept", found)


def prepared_statements(connection: BaseDatabaseWrapper) -> PreparedStatements:
    return PreparedStatements(connection.connection)


def open_cursor(connection: BaseDatabaseWrapper) -> Any:
    """Return a cursor without the ORM's own around it: to open one costs as much as to ask a small query."""
    return connection.cursor().cursor
