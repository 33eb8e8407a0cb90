"""SELECT statements declared with the ORM and compiled once for each shape, not once for each request.

Compiling the SQL of a page takes the ORM longer than PostgreSQL takes to run it, and the result is always the same:
requests of one shape differ only in their values. A statement has placeholders for them, bound when it runs. The SQL
comes from QuerySets, so it follows the models and migrations.
"""

import re
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, TypeAlias, cast

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Expression, QuerySet
from django.db.models.sql.compiler import SQLCompiler
from psycopg import ClientCursor, RawCursor
from psycopg.errors import DuplicatePreparedStatement, FeatureNotSupported, InvalidSqlStatementName
from psycopg.pq import TransactionStatus

from payments.runtime.process import process

# The rows of a statement, as the database driver returns them.
Rows: TypeAlias = list[tuple[Any, ...]]

PLACEHOLDER = re.compile(r"%\((\w+)\)s|%%")

# A condition that hides the organization from PostgreSQL (`Opaque`). Citus must see it to find the shard.
HIDDEN_ORGANIZATION = re.compile(
    r'CASE WHEN \((\S+"organization_id" = \(?%\(organization_id\)s\)?)\) THEN TRUE ELSE FALSE END'
)

# A prepared statement cannot be used: a table has changed, or a pooler has given the session another connection.
UNUSABLE = (FeatureNotSupported, InvalidSqlStatementName, DuplicatePreparedStatement)


class WrongStatement(OperationalError):
    """The database has run another statement. A pooler that does not track prepared statements mixes them up."""

    def __init__(self) -> None:
        super().__init__(
            "The pooler does not track prepared statements. Add prepare_threshold=off to DATABASE_URL, or use a pooler "
            "that tracks them."
        )


class Placeholder(Expression):
    """A named placeholder, bound when the statement runs. The database gets the value as it is."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[()]]:
        return f"%({self.name})s", ()


class Statement:
    """A SELECT statement with placeholders `%(name)s`.

    `is_planned_each_time`: PostgreSQL plans the statement with its values each time, because the best index depends on
    them. Otherwise PostgreSQL prepares the statement once for each connection.
    """

    def __init__(self, sql: str, *, is_planned_each_time: bool = False) -> None:
        self.sql = sql
        self.is_planned_each_time = is_planned_each_time
        self.names = list(dict.fromkeys(filter(None, PLACEHOLDER.findall(sql))))
        # PostgreSQL numbers placeholders: $1.
        numbers = {match: f"${number}" for number, match in enumerate(self.names, start=1)}
        self.numbered_sql = PLACEHOLDER.sub(lambda match: numbers.get(match[1], "%"), sql).encode()

    def on(self, connection: BaseDatabaseWrapper) -> "Statement":
        """Return the statement for the server of an open connection."""
        return self.for_citus if getattr(connection, "uses_citus", False) else self

    @cached_property
    def for_citus(self) -> "Statement":
        return Statement(HIDDEN_ORGANIZATION.sub(r"\1", self.sql), is_planned_each_time=self.is_planned_each_time)

    def rows(self, values: Mapping[str, Any], using: str = DEFAULT_DB_ALIAS) -> Rows:
        return process.hooks.run_statement(self.sql, partial(self.run, values, using))

    def run(self, values: Mapping[str, Any], using: str) -> Rows:
        connection = connections[using]
        is_observed = connection.queries_logged or connection.execute_wrappers  # only Django's cursor calls them
        if connection.vendor == "postgresql" and not is_observed:
            return self.on(open_connection(connection)).run_on_postgresql(connection, values)
        with connection.cursor() as cursor:
            cursor.execute(self.on(connection).sql, values)
            return list(cursor.fetchall())

    def run_on_postgresql(self, connection: BaseDatabaseWrapper, values: Mapping[str, Any]) -> Rows:
        """Run the statement by a cursor of the driver. Opening Django's cursor takes as long as a small query."""
        driver = connection.connection
        with connection.wrap_database_errors:
            if self.is_planned_each_time:
                return ClientCursor(driver).execute(self.sql, values, prepare=False).fetchall()
            # PostgreSQL infers the types of texts. Numbers have several types, each with its statement.
            texts = [None if values[name] is None else str(values[name]) for name in self.names]
            cursor = getattr(driver, "statement_cursor", None) or RawCursor(driver)  # an attribute of our engine
            try:
                return cursor.execute(self.numbered_sql, texts, prepare=True).fetchall()
            except UNUSABLE:
                if driver.info.transaction_status != TransactionStatus.IDLE:
                    raise
                return cursor.execute(self.numbered_sql, texts, prepare=False).fetchall()


def open_connection(connection: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
    """Return the connection, open and checked once for each request."""
    if not connection.health_check_done:  # type: ignore[attr-defined]  # missing in the stubs
        connection.close_if_health_check_failed()
    if connection.connection is None:
        connection.ensure_connection()
    return connection


def compile_queryset(queryset: QuerySet[Any, Any], *, is_read_by_sql: bool = False) -> str:
    """Return the SQL of a QuerySet of tuples. The ORM's converters are not applied to its values.

    `is_read_by_sql`: other SQL reads the rows, so their columns need no converter.

    :raises ValueError: the QuerySet has a value that is not a placeholder, or a column that needs a converter
    """
    compiler = queryset.query.get_compiler(connection=connections[DEFAULT_DB_ALIAS])
    sql, parameters = cast("tuple[str, tuple[Any, ...]]", compiler.as_sql())
    needs_converter = not is_read_by_sql and compiler.get_converters([column for column, _, _ in compiler.select])
    if parameters or needs_converter:
        raise ValueError(f"Only placeholders and columns without a converter can be compiled: {sql}")
    return sql
