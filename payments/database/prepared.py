"""Prepared statements on PostgreSQL, executed directly by libpq, one or several of them in a round trip.

A psycopg cursor parses the parameters of each query, looks for a prepared statement, and waits for the result in
Python. For these statements all of that is known beforehand, and it takes longer than the query itself.

This module uses private APIs of psycopg: `Transformer.set_pgresult`, `Transformer.load_rows` and `error_from_result`.
psycopg has no public way to convert a libpq result to rows without a cursor.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Protocol, TypeAlias

import psycopg
from django.conf import settings
from psycopg import ClientCursor
from psycopg.adapt import Transformer
from psycopg.errors import DuplicatePreparedStatement, FeatureNotSupported, InvalidSqlStatementName, error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from xxhash import xxh3_64_hexdigest

from payments.database.pipeline import Pipeline

# For each connection. The server caches a plan for each statement.
STATEMENTS_MAX = 100

# The server does not know the statement. Some poolers prepared it on another server connection.
MISSING = InvalidSqlStatementName

# A table has changed since the statement was prepared.
OUTDATED = FeatureNotSupported

UNUSABLE = (MISSING, OUTDATED)

PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|%)")

Values: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = list[tuple[Any, ...]]


class CompiledStatement(Protocol):
    """SQL with placeholders `%(name)s`. `is_planned_each_time`: the server plans it with its values."""

    sql: str
    is_planned_each_time: bool


class BoundStatement(Protocol):
    """A statement and a value for each placeholder."""

    @property
    def statement(self) -> CompiledStatement: ...

    @property
    def values(self) -> Values: ...


class PreparedStatements:
    """The prepared statements of one connection, by their SQL. The least recently used statement comes first."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.pipeline = Pipeline(connection)
        self.statements: dict[str, PreparedStatement] = {}
        self.planned_at = monotonic()

    def rows(self, sql: str, values: Values) -> Rows:
        """Run `sql`, with a value for each `%(name)s`, and return its rows. The first run prepares it.

        If the prepared statement has become unusable, `sql` runs unprepared, and the next run prepares it again.

        :raises psycopg.Error: the statement or the connection failed
        """
        statement = self.find_or_prepare(sql)
        try:
            return statement.rows(values)
        except UNUSABLE as error:
            return self.repeat(statement, values, error)

    def run_together(self, queries: Sequence[BoundStatement]) -> list[Rows | psycopg.Error]:
        """Run statements in one round trip, and return the rows or the error of each.

        If the connection fails, the statements without a result get its error.

        :raises psycopg.Error: a statement could not be prepared
        """
        statements = [
            LiteralStatement(self.connection, query)
            if query.statement.is_planned_each_time
            else self.find_or_prepare(query.statement.sql)
            for query in queries
        ]
        sends = [partial(statement.send, query.values) for statement, query in zip(statements, queries, strict=True)]
        outcomes: list[Rows | psycopg.Error] = []
        try:
            for statement, result in zip(statements, self.pipeline.exchange(sends), strict=True):
                try:
                    outcomes.append(load_rows(statement.transformer, statement.pgconn, result))
                except psycopg.Error as error:
                    outcomes.append(error)
        except psycopg.OperationalError as error:
            return [*outcomes, *[error] * (len(queries) - len(outcomes))]
        for number, outcome in enumerate(outcomes):
            if isinstance(outcome, UNUSABLE):
                outcomes[number] = attempt(self.repeat, statements[number], queries[number].values, outcome)
        return outcomes

    def repeat(self, statement: "PreparedStatement | LiteralStatement", values: Values, error: psycopg.Error) -> Rows:
        """Run a statement again, unprepared, after its prepared form has become unusable.

        :raises psycopg.Error: the error has aborted the transaction, or the statement fails again
        """
        if isinstance(statement, LiteralStatement):
            raise error
        self.statements.pop(statement.sql, None)
        if isinstance(error, OUTDATED):
            statement.close()
        if self.connection.pgconn.transaction_status != TransactionStatus.IDLE:
            raise error
        return statement.rows_unprepared(values)

    def discard_plans(self) -> None:
        """Make the server plan each statement again at its next use, with current statistics."""
        self.planned_at = monotonic()
        pgconn = self.connection.pgconn
        result = self.pipeline.run(partial(pgconn.send_query_params, b"DISCARD PLANS", None))
        raise_unless(ExecStatus.COMMAND_OK, pgconn, result)

    def find_or_prepare(self, sql: str) -> "PreparedStatement":
        if monotonic() - self.planned_at >= settings.PLAN_SECONDS_MAX:
            self.discard_plans()
        statement = self.statements.pop(sql, None)
        if statement is None:
            if len(self.statements) == STATEMENTS_MAX:
                self.statements.pop(next(iter(self.statements))).close()
            statement = PreparedStatement(self.pipeline, sql)
        self.statements[sql] = statement
        return statement


class PreparedStatement:
    """A statement that is prepared on one connection."""

    def __init__(self, pipeline: Pipeline, sql: str) -> None:
        self.pipeline = pipeline
        self.pgconn = pipeline.connection.pgconn
        self.sql = sql
        # Clients of a pooler share server connections, so the same name must always mean the same statement.
        self.name = f"payments_{xxh3_64_hexdigest(sql.encode())}".encode()
        self.transformer = Transformer(pipeline.connection)
        self.placeholders: list[str] = []  # the name of the value for $1, $2 and so on
        self.numbered_sql = PLACEHOLDER.sub(lambda match: self.number(match[1]), sql).encode()
        with suppress(DuplicatePreparedStatement):
            result = pipeline.run(partial(self.pgconn.send_prepare, self.name, self.numbered_sql))
            raise_unless(ExecStatus.COMMAND_OK, self.pgconn, result)

    def number(self, placeholder: str | None) -> str:
        """Return `$n` for a placeholder, the same for each occurrence; without a placeholder, the percent sign."""
        if placeholder is None:
            return "%"
        if placeholder not in self.placeholders:
            self.placeholders.append(placeholder)
        return f"${self.placeholders.index(placeholder) + 1}"

    def rows(self, values: Values) -> Rows:
        return load_rows(self.transformer, self.pgconn, self.pipeline.run(partial(self.send, values)))

    def send(self, values: Values) -> None:
        """Send the statement without waiting for its result."""
        self.pgconn.send_query_prepared(self.name, self.parameters(values))

    def rows_unprepared(self, values: Values) -> Rows:
        send = partial(self.pgconn.send_query_params, self.numbered_sql, self.parameters(values))
        return load_rows(self.transformer, self.pgconn, self.pipeline.run(send))

    def parameters(self, values: Values) -> list[Any]:
        """Return the values in PostgreSQL's text format."""
        return [None if (value := values[name]) is None else str(value).encode() for name in self.placeholders]

    def close(self) -> None:
        """Remove the statement from the server, by libpq's own message: poolers do not recognize a DEALLOCATE."""
        self.pipeline.run(partial(self.pgconn.send_close_prepared, self.name))


class LiteralStatement:
    """A statement with its values written into the SQL, so that the server plans it with them."""

    def __init__(self, connection: psycopg.Connection[Any], query: BoundStatement) -> None:
        self.pgconn = connection.pgconn
        self.transformer = Transformer(connection)
        self.sql = ClientCursor(connection).mogrify(query.statement.sql, query.values).encode()

    def send(self, _values: Values) -> None:
        """Send the statement without waiting for its result."""
        self.pgconn.send_query_params(self.sql, None)


def attempt(function: Callable[..., Rows], *arguments: Any) -> Rows | psycopg.Error:
    """Return the rows that a function returns, or its error."""
    try:
        return function(*arguments)
    except psycopg.Error as error:
        return error


def load_rows(transformer: Any, pgconn: PGconn, result: PGresult) -> Rows:
    if result.status != ExecStatus.TUPLES_OK:
        raise error_of(pgconn, result)
    transformer.set_pgresult(result)
    rows: Rows = transformer.load_rows(0, result.ntuples, tuple)
    transformer.set_pgresult(None)  # otherwise the result stays in memory until the next run
    return rows


def raise_unless(status: ExecStatus, pgconn: PGconn, result: PGresult) -> None:
    """Raise the server's or the connection's error unless the result has this status.

    :raises psycopg.Error: the result has another status
    """
    if result.status != status:
        raise error_of(pgconn, result)


def error_of(pgconn: PGconn, result: PGresult) -> psycopg.Error:
    """Return the error of the connection if it is broken, else the server's."""
    if pgconn.status == ConnStatus.BAD:
        return psycopg.OperationalError(pgconn.error_message.decode(errors="replace"))
    return error_from_result(result)
