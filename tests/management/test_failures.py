"""The line for a failure of the database: the reason that the database gives, and the next step."""

import errno
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from payments.management.failures import explain
from tests.support.connecting import connected_to
from tests.support.migrated import empty_database, fresh_database
from tests.support.sql import fetch_value

CHECK_DISK = "Check the free space and the state of the disk, and the maximum size of files."
CHECK_SERVER = "Check DATABASE_URL, and that the database server runs."


def error_of(sql: str) -> DatabaseError:
    """Return the error of a statement."""
    with pytest.raises(DatabaseError) as error, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)
    return error.value


def test_invalid_settings_are_explained_by_their_message() -> None:
    assert explain(ImproperlyConfigured("Invalid settings.")) == "Invalid settings."


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), OSError("x"), ConnectionResetError(104, "x")])
def test_bug_needs_its_traceback(error: Exception) -> None:
    assert explain(error) is None


def test_file_without_permission_is_named(tmp_path: Path) -> None:
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path))

    assert explain(error) == f"{tmp_path}: Permission denied. Allow this user to use it."


@pytest.mark.django_db
def test_violated_constraint_needs_its_traceback() -> None:
    error = error_of("INSERT INTO payments_organization (id, name) VALUES (1, NULL)")

    assert explain(error) is None


@pytest.mark.only("postgresql")
@pytest.mark.parametrize(
    ("state", "step"),
    [
        ("53100", ". Free disk space on the database server."),
        ("25006", ". Check that DATABASE_URL leads to the primary, and that it accepts writes."),
        ("42501", ". Grant the privilege to the user in DATABASE_URL, or use the owner."),
        ("53200", ""),
    ],
)
@pytest.mark.django_db
def test_sqlstate_of_postgresql_determines_the_next_step(state: str, step: str) -> None:
    error = error_of(f"DO $$ BEGIN RAISE EXCEPTION E'no luck.\\nsecret' USING ERRCODE = '{state}'; END $$")

    assert explain(error) == f"The database failed: no luck{step}"


@pytest.mark.only("postgresql")
def test_connection_that_postgresql_ended_leads_to_the_server(tmp_path: Path) -> None:
    with fresh_database(tmp_path) as url, connected_to(url):
        with pytest.raises(DatabaseError) as error:
            fetch_value("SELECT pg_terminate_backend(pg_backend_pid())")
        with pytest.raises(DatabaseError) as later_error:
            fetch_value("SELECT 1")

    assert explain(error.value) == (
        f"The database failed: terminating connection due to administrator command. {CHECK_SERVER}"
    )
    assert explain(later_error.value) == f"The database failed: the connection is closed. {CHECK_SERVER}"


@pytest.mark.only("sqlite")
def test_full_sqlite_database_leads_to_the_disk(tmp_path: Path) -> None:
    file = tmp_path / "payments.sqlite3"
    with connected_to(f"sqlite:///{file}"):
        fetch_value("PRAGMA max_page_count = 2")
        error = error_of(
            "CREATE TABLE a AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n"
        )

        assert explain(error) == f"The database failed: {file}: database or disk is full. {CHECK_DISK}"


@pytest.mark.only("sqlite")
def test_file_that_is_no_database_leads_to_a_backup(tmp_path: Path) -> None:
    file = tmp_path / "payments.sqlite3"
    file.write_bytes(b"nonsense" * 1000)
    with connected_to(f"sqlite:///{file}"), pytest.raises(CommandError) as error:
        call_command("list_api_keys")

    step = "Check the path in DATABASE_URL. If the file is damaged, restore a backup."
    assert str(error.value) == f"The database failed: {file}: file is not a database. {step}"


@pytest.mark.only("sqlite")
def test_locked_sqlite_database_leads_to_another_attempt(tmp_path: Path) -> None:
    file = tmp_path / "payments.sqlite3"
    with connected_to(f"sqlite:///{file}"):
        fetch_value("PRAGMA busy_timeout = 1")
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            error = error_of("CREATE TABLE a (b)")

        step = "Another process writes. Run the command again later."
        assert explain(error) == f"The database failed: {file}: database is locked. {step}"


@pytest.mark.parametrize("command", ["list_api_keys", "export_payments"])
def test_missing_table_leads_to_the_migration(tmp_path: Path, command: str) -> None:
    with empty_database(tmp_path) as url, connected_to(url), pytest.raises(CommandError) as error:
        call_command(command)

    assert str(error.value).endswith(". Run manage.py migrate.")
    assert "\n" not in str(error.value)


@pytest.mark.django_db
def test_missing_column_leads_to_the_migration() -> None:
    [(_, latest)] = MigrationLoader(connection).graph.leaf_nodes("payments")
    MigrationRecorder(connection).record_unapplied("payments", latest)
    error = error_of("SELECT unknown FROM payments_payment")

    assert (explain(error) or "").endswith(". Run manage.py migrate.")


@pytest.mark.django_db
def test_unknown_table_in_a_migrated_database_needs_no_migration() -> None:
    error = error_of("SELECT 1 FROM payments_unknown")

    assert "migrate" not in (explain(error) or "")
