"""Statements that PostgreSQL has prepared, run with a single call to libpq.

A cursor is made for any statement: each time it looks for parameters, for their types, for a statement prepared
before, and waits in Python. Where all of that is known, it takes longer than to ask and to read the answer.
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

# For each connection. The server keeps a plan for every one of them.
STATEMENTS_MAX = 100

# How long a plan is used. PostgreSQL replaces a plan only when the catalog has another definition of a table or another
# number of its rows. Without this limit, a plan from the time between a table's first VACUUM and its first ANALYZE
# would stay, and would read all payments for each page.
PLANS_SECONDS_MAX = 60.0

# What a server says of a statement that it does not have: behind some poolers it was prepared on another.
MISSING = InvalidSqlStatementName

# What it says of one whose tables have changed since.
OUTDATED = FeatureNotSupported

PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|%)")


class PreparedStatements:
    """What is prepared on one connection, by its SQL, the latest used last."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.prepared: dict[str, Prepared] = {}
        self.plans_end_at = monotonic() + PLANS_SECONDS_MAX

    def rows(self, sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run `sql`, whose placeholders are `%(name)s`, and which is prepared where it is not yet.

        Where what was prepared cannot be used it is run without, and prepared anew the next time.

        :raises psycopg.Error: what the server, or the connection to it, has failed with
        """
        if monotonic() >= self.plans_end_at:
            self.discard_plans()
        found = self.find(sql)
        try:
            return found.rows(values)
        except (MISSING, OUTDATED) as error:
            del self.prepared[sql]
            if isinstance(error, OUTDATED):
                found.close()
            if self.connection.pgconn.transaction_status != TransactionStatus.IDLE:
                raise  # the transaction has failed with it
            return found.rows_unprepared(values)

    def are_ready(self) -> bool:
        """Tell whether a statement can be run now: whatever has to begin before it, has begun."""
        in_transaction = self.connection.pgconn.transaction_status == TransactionStatus.INTRANS
        return self.connection.autocommit or in_transaction

    def discard_plans(self) -> None:
        """Make the server plan each statement again at its next use, with current statistics."""
        self.plans_end_at = monotonic() + PLANS_SECONDS_MAX
        expect(self.connection.pgconn, ExecStatus.COMMAND_OK, self.connection.pgconn.exec_(b"DISCARD PLANS"))

    def find(self, sql: str) -> "Prepared":
        found = self.prepared.pop(sql, None)
        if found is None:
            if len(self.prepared) == STATEMENTS_MAX:
                self.prepared.pop(next(iter(self.prepared))).close()
            found = Prepared(self.connection, sql)
        self.prepared[sql] = found
        return found


class Prepared:
    """One statement, prepared on one connection."""

    def __init__(self, connection: psycopg.Connection[Any], sql: str) -> None:
        self.pgconn = connection.pgconn
        # Behind a pooler others may share the server's connection: the same name must be the same statement.
        self.name = f"payments_{xxh3_64_hexdigest(sql.encode())}".encode()
        self.transformer = Transformer(connection)
        self.slots: list[str] = []
        self.numbered = PLACEHOLDER.sub(lambda placeholder: self.number(placeholder[1]), sql).encode()
        with suppress(DuplicatePreparedStatement):
            expect(self.pgconn, ExecStatus.COMMAND_OK, self.pgconn.prepare(self.name, self.numbered))

    def number(self, slot: str | None) -> str:
        """Return `$n` for a slot, the same one wherever it stands again; without one, the percent sign."""
        if slot is None:
            return "%"
        if slot not in self.slots:
            self.slots.append(slot)
        return f"${self.slots.index(slot) + 1}"

    def rows(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self.fetched(self.pgconn.exec_prepared(self.name, self.parameters(values)))

    def rows_unprepared(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self.fetched(self.pgconn.exec_params(self.numbered, self.parameters(values)))

    def parameters(self, values: Mapping[str, Any]) -> list[Any]:
        return [text(values[slot]) for slot in self.slots]

    def fetched(self, result: PGresult) -> list[tuple[Any, ...]]:
        expect(self.pgconn, ExecStatus.TUPLES_OK, result)
        self.transformer.set_pgresult(result)
        rows = self.transformer.load_rows(0, result.ntuples, tuple)
        self.transformer.set_pgresult(None)  # it would be kept until the same is asked again
        return rows

    def close(self) -> None:
        """Have the server forget it, by libpq's own call: of a DEALLOCATE no pooler takes notice."""
        self.pgconn.close_prepared(self.name)


def expect(pgconn: PGconn, status: ExecStatus, result: PGresult) -> None:
    """Raise the error of the server or of the connection, unless the result has this status."""
    if result.status == status:
        return
    if pgconn.status == ConnStatus.BAD:
        raise psycopg.OperationalError(pgconn.error_message.decode(errors="replace"))
    raise error_from_result(result)


def text(value: Any) -> bytes | None:
    return None if value is None else str(value).encode()
