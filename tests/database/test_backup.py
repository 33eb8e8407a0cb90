"""Backups of SQLite are complete, consistent and private."""

import sqlite3
import stat
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from payments.conf import conf
from payments.database.sqlite.backup import Damaged, back_up
from tests.support.commands import manage
from tests.support.connecting import connected_to
from tests.support.service import Service

pytestmark = pytest.mark.only("sqlite")

PAYMENTS = conf.IMPORT_BATCH_RECORDS + 1000
WRITTEN_FIRST = conf.IMPORT_BATCH_RECORDS + 500  # more than an import's first batch
PAGE_BYTES = 4096


def ignore_progress(copied: int, pages: int) -> None:
    """Ignore the progress."""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A small database."""
    file = tmp_path / "numbers.sqlite3"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE numbers (number INTEGER UNIQUE, text TEXT)")
        connection.executemany("INSERT INTO numbers VALUES (?, 'before')", [(number,) for number in range(2000)])
        connection.commit()
    return file


def texts(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as connection:
        return {text for (text,) in connection.execute("SELECT text FROM numbers")}


def test_commit_during_the_copy_neither_changes_nor_restarts_it(database: Path, tmp_path: Path) -> None:
    steps: list[int] = []

    def change(copied: int, pages: int) -> None:
        steps.append(copied)
        with closing(sqlite3.connect(database)) as other:
            other.execute("UPDATE numbers SET text = 'after'")
            other.commit()

    back_up(database, to=tmp_path / "copy", on_progress=change, step_pages=1)

    assert texts(tmp_path / "copy") == {"before"}
    assert texts(database) == {"after"}
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) > 10


def test_only_the_owner_can_read_a_copy(database: Path, tmp_path: Path) -> None:
    back_up(database, to=tmp_path / "copy", on_progress=ignore_progress)

    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600


def test_existing_file_is_not_overwritten(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy"
    file.write_text("precious")

    with pytest.raises(FileExistsError):
        back_up(database, to=file, on_progress=ignore_progress)

    assert file.read_text() == "precious"


def interrupt(copied: int, pages: int) -> None:
    raise KeyboardInterrupt


def test_interrupted_copy_leaves_no_file(database: Path, tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()

    with pytest.raises(KeyboardInterrupt):
        back_up(database, to=tmp_path / "copies" / "copy", on_progress=interrupt, step_pages=1)

    assert list((tmp_path / "copies").iterdir()) == []


def test_damaged_database_is_reported_and_not_copied(database: Path, tmp_path: Path) -> None:
    content = database.read_bytes()
    database.write_bytes(content[: PAGE_BYTES * 5] + bytes(PAGE_BYTES) + content[PAGE_BYTES * 6 :])
    (tmp_path / "copies").mkdir()

    with pytest.raises(Damaged):
        back_up(database, to=tmp_path / "copies" / "copy", on_progress=ignore_progress)
    with connected_to(f"sqlite:///{database}"), pytest.raises(CommandError, match=f"{database} is damaged: "):
        call_command("back_up_database", str(tmp_path / "copies" / "copy"), verbosity=0)

    assert list((tmp_path / "copies").iterdir()) == []


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Service:
    service = Service(f"sqlite:///{tmp_path_factory.mktemp('filled')}/payments.sqlite3")
    service.migrate()
    service.create_demo_payments(PAYMENTS)
    return service


def back_up_service(service: Service, file: Path) -> str:
    """Return what the command prints."""
    done = manage("back_up_database", str(file), url=service.database_url)
    assert (done.returncode, done.stdout) == (0, "")
    return done.stderr


@pytest.mark.extended
@pytest.mark.processes
def test_copy_contains_all_or_nothing_of_an_import(filled: Service, tmp_path: Path) -> None:
    before = filled.exported()
    after = before.replace('"description":"', '"description":"again ')
    lines = after.splitlines(keepends=True)
    with filled.popen("import_payments", "-", stdin=subprocess.PIPE) as command:
        assert command.stdin is not None
        command.stdin.write("".join(lines[:WRITTEN_FIRST]).encode())
        command.stdin.flush()
        back_up_service(filled, tmp_path / "during")
        assert command.poll() is None
        command.communicate("".join(lines[WRITTEN_FIRST:]).encode())
    back_up_service(filled, tmp_path / "afterwards")

    assert Service(f"sqlite:///{tmp_path}/during").exported() == before
    assert Service(f"sqlite:///{tmp_path}/afterwards").exported() == after


def test_restored_copy_is_served(filled: Service, tmp_path: Path, client: Client) -> None:
    key = filled.create_api_key(organization=1001, mode="live")

    message = back_up_service(filled, tmp_path / "copy")

    assert message == f"Created {tmp_path}/copy, {(tmp_path / 'copy').stat().st_size} bytes.\n"
    with connected_to(f"sqlite:///{tmp_path}/copy"):
        assert client.get("/v2/payments", headers={"Authorization": f"Bearer {key}"}).status_code == 200


def in_missing_directory(directory: Path) -> Path:
    return directory / "missing" / "copy"


def over_existing_file(directory: Path) -> Path:
    (directory / "copy").touch()
    return directory / "copy"


@pytest.mark.parametrize(
    ("target", "message"),
    [(in_missing_directory, "No such file or directory"), (over_existing_file, "exists already")],
)
def test_error_names_the_file_that_cannot_be_written(
    database: Path, tmp_path: Path, target: Callable[[Path], Path], message: str
) -> None:
    file = target(tmp_path)

    with connected_to(f"sqlite:///{database}"), pytest.raises(CommandError, match=f"{file}.*: {message}"):
        call_command("back_up_database", str(file))


def test_missing_database_is_not_created(tmp_path: Path) -> None:
    with (
        connected_to(f"sqlite:///{tmp_path}/missing"),
        pytest.raises(CommandError, match=f"Cannot copy {tmp_path}/missing: unable to open database file"),
    ):
        call_command("back_up_database", str(tmp_path / "copy"))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.only("postgresql")
def test_command_on_postgresql_names_its_tools(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="pg_dump") as error:
        call_command("back_up_database", str(tmp_path / "copy"))

    assert error.value.returncode == 1
