"""Database errors are classified by their codes."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError, ProgrammingError
from psycopg.errors import LockNotAvailable, QueryCanceled, UndefinedTable

from payments.runtime.database_errors import is_locked, is_outage, is_timeout
from tests.support.list_errors import caused_by

pytestmark = pytest.mark.once

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "file")) as connection:
        connection.execute("CREATE TABLE numbers (number)")
    return tmp_path / "file"


@pytest.fixture
def connection(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, timeout=0, check_same_thread=False)) as connection:
        yield connection


def error_of(connection: sqlite3.Connection, sql: str) -> sqlite3.Error:
    with pytest.raises(sqlite3.Error) as raised:
        connection.execute(sql).fetchall()
    return raised.value


def test_interrupted_statement_of_sqlite_is_a_timeout(connection: sqlite3.Connection) -> None:
    timer = threading.Timer(0.1, connection.interrupt)
    timer.start()

    cause = error_of(connection, ENDLESS)

    for error in (cause, caused_by(cause)):
        assert (is_timeout(error), is_locked(error)) == (True, False)


def test_locked_file_of_sqlite_is_locked(file: Path, connection: sqlite3.Connection) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")

        error = caused_by(error_of(connection, "SELECT * FROM numbers"))

    assert (is_locked(error), is_timeout(error)) == (True, False)


def test_snapshot_that_another_writer_made_stale_is_locked(file: Path, connection: sqlite3.Connection) -> None:
    """SQLite reports it by an extended code, SQLITE_BUSY_SNAPSHOT."""
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM numbers").fetchall()
        writer.execute("INSERT INTO numbers VALUES (1)")

        cause = error_of(connection, "INSERT INTO numbers VALUES (2)")

    assert cause.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT"
    assert is_locked(caused_by(cause))


@pytest.mark.parametrize(
    ("cause", "expected"),
    [(QueryCanceled(), (True, False)), (LockNotAvailable(), (False, True))],
)
def test_postgresql_errors_are_classified_by_sqlstate(cause: Exception, expected: tuple[bool, ...]) -> None:
    error = caused_by(cause)

    assert (is_timeout(error), is_locked(error)) == expected


@pytest.mark.parametrize("message", ["interrupted", "database is locked"])
def test_messages_are_not_compared(message: str) -> None:
    error = OperationalError(message)

    assert (is_timeout(error), is_locked(error)) == (False, False)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OperationalError(), True),
        (InterfaceError(), True),
        (caused_by(sqlite3.DatabaseError("database disk image is malformed"), DatabaseError), True),
        (DatabaseError("Forced update did not affect any rows."), False),
        (caused_by(UndefinedTable(), ProgrammingError), True),
        (ProgrammingError("syntax error"), False),
        (IntegrityError(), False),
        (ValueError(), False),
        (None, False),
    ],
)
def test_outage_is_an_error_of_the_database_itself(error: BaseException | None, expected: bool) -> None:
    assert is_outage(error) is expected
