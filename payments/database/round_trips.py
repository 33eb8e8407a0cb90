"""Several queries in one round trip to the database. Over a network, a request mostly waits for round trips."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import psycopg
from django.db import DEFAULT_DB_ALIAS, Error, connections

from payments.database.runners import can_run_directly, is_observed, open_connection, prepared_statements
from payments.database.statements import Statement
from payments.runtime.process import process

# Between the statements of a round trip that are reported as one.
SEPARATOR = ";\n"

Outcome: TypeAlias = list[Any] | Error


class Query(NamedTuple):
    """A statement and the values of its placeholders."""

    statement: Statement[Any]
    values: Mapping[str, Any]

    def rows(self, using: str = DEFAULT_DB_ALIAS) -> list[Any]:
        """Run the query on the database with this alias and return its rows."""
        return self.statement.rows(self.values, using)

    @property
    def has_filters(self) -> bool:
        return self.statement.is_planned_each_time


class ReadAhead(NamedTuple):
    """Queries that have run already, and the rows or the error of each."""

    queries: Sequence[Query] = ()
    outcomes: Sequence[Outcome] = ()

    def rows(self, query: Query) -> list[Any] | None:
        """Return the rows of a query; None unless the same statement has run with the same values.

        :raises Error: the query failed
        """
        if query not in self.queries:
            return None
        return unwrap(self.outcomes[self.queries.index(query)])


NOTHING = ReadAhead()


def unwrap(outcome: Outcome) -> list[Any]:
    """Return the rows of a query, or raise its error."""
    if isinstance(outcome, Error):
        raise outcome
    return outcome


def can_pipeline() -> bool:
    """Return whether the database can now run several queries in one round trip."""
    connection = open_connection(DEFAULT_DB_ALIAS)
    return connection.vendor == "postgresql" and not is_observed(connection) and can_run_directly(connection)


def run_together(queries: Sequence[Query]) -> list[Outcome]:
    """Return the rows or the error of each query. Call it only if `can_pipeline`.

    :raises Error: a statement could not be prepared, or the connection is lost
    """
    try:
        run = partial(prepared_statements(open_connection(DEFAULT_DB_ALIAS)).run_together, queries)
        if process.hooks.registered:
            run = partial(process.hooks.run_statement, SEPARATOR.join(query.statement.sql for query in queries), run)
        outcomes = run()
    except psycopg.Error as error:
        raise converted(error) from error
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome, psycopg.Error):
            outcomes[number] = converted(outcome)  # type: ignore[call-overload]
    return outcomes  # type: ignore[return-value]  # the remaining errors are Django's


def converted(error: psycopg.Error) -> Error:
    """Return Django's error for an error of the driver."""
    try:
        with connections[DEFAULT_DB_ALIAS].wrap_database_errors:
            raise error
    except Error as django_error:
        return django_error
