"""Whatever becomes of SQLite's file, each request has an answer in time, and all is well as soon as it is back."""

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from django.db import OperationalError, connections

from payments.database.sqlite.base import DatabaseWrapper
from payments.runtime.database_errors import is_outage
from payments_site.environment import SQLITE
from tests.support.filters import assert_told_what_to_narrow
from tests.support.load import Load
from tests.support.scale import times
from tests.support.service import Service

CLIENTS = 8
ANSWER_SECONDS_MAX = 3
PAYMENTS = 500
NOBODY = 65534


class Faulty(NamedTuple):
    """A service over a file that a test may spoil."""

    service: Service
    file: Path
    key: str
    log: Path

    def load(self) -> Load:
        return Load(self.service.port, self.key)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    directory = tmp_path_factory.mktemp("faulty")
    file, log = directory / "payments.sqlite3", directory / "log"
    service = Service(f"sqlite:///{file}", workers=2, log=log)
    service.migrate()
    with service.serving():
        service.create_demo_payments(PAYMENTS)
        yield Faulty(service, file, service.create_api_key(organization=1001, mode="live"), log)


@contextmanager
def missing(file: Path) -> Iterator[None]:
    """Move the file away, with all that SQLite keeps beside it, and back again: it must never be seen without that."""
    files = sorted(file.parent.glob(f"{file.name}*"))
    for each in files:
        each.rename(each.with_name(f"away-{each.name}"))
    yield
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()
    for each in reversed(files):
        each.with_name(f"away-{each.name}").rename(each)


@contextmanager
def never_made(file: Path) -> Iterator[None]:
    with missing(file):
        yield
        assert not file.exists(), "a request has made a database"


@contextmanager
def replaced(file: Path) -> Iterator[None]:
    """Put another database into its place, as when a backup is put back."""
    with missing(file):
        Service(f"sqlite:///{file}").migrate()
        yield


@contextmanager
def damaged(file: Path) -> Iterator[None]:
    """Put something else into its place, as a copy that went wrong is."""
    with missing(file):
        file.write_bytes(b"nonsense" * 1024)
        yield


@pytest.mark.parametrize("fault", [never_made, damaged])
def test_a_file_that_is_not_usable_is_said_to_be_unavailable_and_is_named_in_the_log(
    faulty: Faulty, fault: Callable[[Path], AbstractContextManager[None]]
) -> None:
    with faulty.load().of(CLIENTS) as load:
        load.wait_for(200, begun_after=time.monotonic())
        with fault(faulty.file):
            load.wait_for_each(503, begun_after=time.monotonic())
        load.assert_well_again(back_at=time.monotonic())

    load.assert_kept(seconds_max=ANSWER_SECONDS_MAX)
    assert f"The database {faulty.file} failed" in faulty.log.read_text()
    load.tell(fault.__name__)


def test_a_file_that_somebody_has_locked_is_waited_for_in_bounded_time(faulty: Faulty, tmp_path: Path) -> None:
    file = tmp_path / "payments.sqlite3"
    shutil.copy(faulty.file, file)
    service = Service(f"sqlite:///{file}", log=tmp_path / "log")
    load = Load(service.port, service.create_api_key(organization=1001, mode="live"))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("UPDATE payments_apikey SET name = name")
        with service.serving(), load.of(CLIENTS):
            load.wait_for_each(503, begun_after=0)
            other.close()
            load.assert_well_again(back_at=time.monotonic())

    load.assert_kept(seconds_max=ANSWER_SECONDS_MAX)
    assert f"The database {file} failed: database is locked" in (tmp_path / "log").read_text()


def test_a_file_that_was_replaced_is_read_from_the_next_request_on(faulty: Faulty) -> None:
    """An open file would be read for ever, though it has no name any more."""
    assert faulty.load().ask_once().status == 200

    with replaced(faulty.file):
        answers = [faulty.load().ask_once() for _ in range(CLIENTS)]

    assert {answer.status for answer in answers} == {401}, "the key is in the other file"
    assert {faulty.load().ask_once().status for _ in range(CLIENTS)} == {200}


def test_a_service_that_does_not_look_at_the_file_is_found_out(faulty: Faulty) -> None:
    unguarded = faulty.service.unguarded()
    with unguarded.serving():
        load = Load(unguarded.port, faulty.key)
        assert {load.ask_once().status for _ in range(CLIENTS)} == {200}
        with replaced(faulty.file):
            assert {load.ask_once().status for _ in range(CLIENTS)} != {401}


@pytest.mark.django_db
def test_a_file_that_cannot_be_written_is_unavailable_too() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        file = Path(directory) / "payments.sqlite3"
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE payments (id)")
        file.chmod(0o444)
        Path(directory).chmod(0o555)
        wrapper = DatabaseWrapper({**connections.configure_settings({"default": SQLITE})["default"], "NAME": file})

        with without_root(), pytest.raises(OperationalError) as error, wrapper.cursor() as cursor:
            cursor.execute("SELECT id FROM payments")

    assert is_outage(error.value)


@contextmanager
def without_root() -> Iterator[None]:
    """Be somebody whom file permissions hold back."""
    user = os.geteuid()
    os.seteuid(user or NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def test_readers_are_served_while_an_import_writes(faulty: Faulty) -> None:
    lines = faulty.service.exported().replace('"description":"', '"description":"again ')
    end = time.monotonic() + times(0, long=300)
    with faulty.load().of(CLIENTS) as load:
        imports = 0
        while imports == 0 or time.monotonic() < end:
            faulty.service.manage("import_payments", "-", input=lines.replace("again", f"again {imports % 2}"))
            imports += 1

    assert {answer.status for answer in load.answers} == {200}
    load.tell(f"readers during {imports} imports")


@contextmanager
def slow(file: Path) -> Iterator[None]:
    """Have every row of a payment take for ever."""
    endless = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT max(n) FROM numbers"
    with closing(sqlite3.connect(file)) as other:
        other.execute("ALTER TABLE payments_payment RENAME TO payments")
        other.execute(f"CREATE VIEW payments_payment AS SELECT * FROM payments WHERE ({endless}) > 0")  # noqa: S608
        yield
        other.execute("DROP VIEW payments_payment")
        other.execute("ALTER TABLE payments RENAME TO payments_payment")


def test_filters_that_take_too_long_are_told_what_to_narrow_and_nobody_else_waits_for_them(faulty: Faulty) -> None:
    with slow(faulty.file):
        assert_told_what_to_narrow(faulty.service.base_url, faulty.key)
