"""Prepared statements on PostgreSQL, executed by a single call to libpq.

A psycopg cursor parses the parameters of each query, looks for a prepared statement, and waits for the result in
Python. For these statements all of that is known beforehand, and it takes longer than the query itself.

This module uses private APIs of psycopg: `Transformer.set_pgresult`, `Transformer.load_rows` and `error_from_result`.
psycopg has no public way to convert a libpq result to rows without a cursor.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import DuplicatePreparedStatement, FeatureNotSupported, InvalidSqlStatementName, error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from xxhash import xxh3_64_hexdigest

# For each connection. The server caches a plan for each statement.
STATEMENTS_MAX = 100

# PostgreSQL replaces a cached plan only if a table's definition or its number of rows in the catalog changes. Without
# this limit, a plan from between a table's first VACUUM and its first ANALYZE would stay, and read all payments for
# each page.
PLANS_SECONDS_MAX = 60.0

# The server does not know the statement. Some poolers prepared it on another server connection.
MISSING = InvalidSqlStatementName

# A table has changed since the statement was prepared.
OUTDATED = FeatureNotSupported

PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|%)")


class PreparedStatements:
    """The prepared statements of one connection, by their SQL. The least recently used statement comes first."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.statements: dict[str, PreparedStatement] = {}
        self.plans_expire_at = monotonic() + PLANS_SECONDS_MAX

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run `sql`, with a value for each `%(name)s`, and return its rows. The first run prepares it.

        If the prepared statement has become unusable, `sql` runs unprepared, and the next run prepares it again.

        :raises psycopg.Error: the statement or the connection failed
        """
        if monotonic() >= self.plans_expire_at:
            self.discard_plans()
        statement = self.find_or_prepare(sql)
        try:
            return statement.rows(values)
        except (MISSING, OUTDATED) as error:
            del self.statements[sql]
            if isinstance(error, OUTDATED):
                statement.close()
            if self.connection.pgconn.transaction_status != TransactionStatus.IDLE:
                raise  # the error has aborted the transaction
            return statement.rows_unprepared(values)

    def can_run(self) -> bool:
        """Return whether a statement can run directly: a cursor begins the transaction with its first statement."""
        in_transaction = self.connection.pgconn.transaction_status == TransactionStatus.INTRANS
        return self.connection.autocommit or in_transaction

    def discard_plans(self) -> None:
        """Make the server plan each statement again at its next use, with current statistics."""
        self.plans_expire_at = monotonic() + PLANS_SECONDS_MAX
        raise_unless(ExecStatus.COMMAND_OK, self.connection.pgconn, self.connection.pgconn.exec_(b"DISCARD PLANS"))

    def find_or_prepare(self, sql: str) -> "PreparedStatement":
        statement = self.statements.pop(sql, None)
        if statement is None:
            if len(self.statements) == STATEMENTS_MAX:
                self.statements.pop(next(iter(self.statements))).close()
            statement = PreparedStatement(self.connection, sql)
        self.statements[sql] = statement
        return statement


class PreparedStatement:
    """A statement that is prepared on one connection."""

    def __init__(self, connection: psycopg.Connection[Any], sql: str) -> None:
        self.pgconn = connection.pgconn
        # Clients of a pooler share server connections, so the same name must always mean the same statement.
        self.name = f"payments_{xxh3_64_hexdigest(sql.encode())}".encode()
        self.transformer = Transformer(connection)
        self.placeholders: list[str] = []  # the name of the value for $1, $2 and so on
        self.numbered_sql = PLACEHOLDER.sub(lambda match: self.number(match[1]), sql).encode()
        with suppress(DuplicatePreparedStatement):
            raise_unless(ExecStatus.COMMAND_OK, self.pgconn, self.pgconn.prepare(self.name, self.numbered_sql))

    def number(self, placeholder: str | None) -> str:
        """Return `$n` for a placeholder, the same for each occurrence; without a placeholder, the percent sign."""
        if placeholder is None:
            return "%"
        if placeholder not in self.placeholders:
            self.placeholders.append(placeholder)
        return f"${self.placeholders.index(placeholder) + 1}"

    def rows(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self.load_rows(self.pgconn.exec_prepared(self.name, self.parameters(values)))

    def rows_unprepared(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self.load_rows(self.pgconn.exec_params(self.numbered_sql, self.parameters(values)))

    def parameters(self, values: Mapping[str, Any]) -> list[Any]:
        return [encode(values[name]) for name in self.placeholders]

    def load_rows(self, result: PGresult) -> list[tuple[Any, ...]]:
        raise_unless(ExecStatus.TUPLES_OK, self.pgconn, result)
        self.transformer.set_pgresult(result)
        rows = self.transformer.load_rows(0, result.ntuples, tuple)
        self.transformer.set_pgresult(None)  # otherwise the result stays in memory until the next run
        return rows

    def close(self) -> None:
        """Remove the statement from the server, by libpq's own message: poolers do not recognize a DEALLOCATE."""
        self.pgconn.close_prepared(self.name)


def raise_unless(status: ExecStatus, pgconn: PGconn, result: PGresult) -> None:
    """Raise the server's or the connection's error unless the result has this status.

    :raises psycopg.Error: the result has another status
    """
    if result.status == status:
        return
    if pgconn.status == ConnStatus.BAD:
        raise psycopg.OperationalError(pgconn.error_message.decode(errors="replace"))
    raise error_from_result(result)


def encode(value: Any) -> bytes | None:
    """Return a parameter in PostgreSQL's text format."""
    return None if value is None else str(value).encode()
