"""The files of a new SQLite database are private. SQLite gives its journals the mode of the database file."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from tests.support.connecting import connected_to

pytestmark = pytest.mark.only("sqlite")


@contextmanager
def masked(umask: int) -> Iterator[None]:
    """Set the process's file mode creation mask within the block."""
    previous = os.umask(umask)
    try:
        yield
    finally:
        os.umask(previous)


def modes(directory: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}


def write_in(journal_mode: str) -> None:
    """Write within an open transaction, in a journal mode of SQLite."""
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA journal_mode = {journal_mode}")
        cursor.execute("BEGIN IMMEDIATE")
        cursor.execute("CREATE TABLE numbers (number integer)")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize(("journal_mode", "suffixes"), [("WAL", ["", "-shm", "-wal"]), ("DELETE", ["", "-journal"])])
def test_only_the_owner_can_read_a_new_sqlite_database(
    tmp_path: Path, journal_mode: str, suffixes: list[str], umask: int
) -> None:
    with masked(umask), connected_to(f"sqlite:///{tmp_path}/new"):
        write_in(journal_mode)

        assert modes(tmp_path) == {f"new{suffix}": 0o600 for suffix in suffixes}


def test_link_to_a_missing_file_creates_a_private_sqlite_database(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "new")

    with masked(0), connected_to(f"sqlite:///{tmp_path}/link"):
        connection.ensure_connection()

    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


def test_existing_sqlite_database_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "old").touch(mode=0o640)

    with connected_to(f"sqlite:///{tmp_path}/old"):
        write_in("WAL")

        assert modes(tmp_path) == {"old": 0o640, "old-shm": 0o640, "old-wal": 0o640}


def test_missing_directory_of_a_sqlite_database_is_reported(tmp_path: Path) -> None:
    with (
        connected_to(f"sqlite:///{tmp_path}/missing/new"),
        pytest.raises(OperationalError, match="unable to open database file"),
    ):
        connection.ensure_connection()


def test_sqlite_database_in_memory_creates_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    with connected_to("sqlite:///:memory:"):
        connection.ensure_connection()
        connection.connection.close()  # Django keeps a database in memory open

    assert modes(tmp_path) == {}
