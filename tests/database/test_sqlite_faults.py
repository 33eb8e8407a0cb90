"""Faults of the SQLite file: every request gets a response in time, and the service recovers with the file."""

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
from tests.support.list_errors import assert_timeout_names_created_at
from tests.support.load import Load
from tests.support.scale import times
from tests.support.service import USUAL_LIMITS, Service

pytestmark = pytest.mark.only("sqlite")

CLIENTS = 8
RESPONSE_SECONDS_MAX = 3
PAYMENTS = 500
UNPRIVILEGED_USER = 65534


class Faulty(NamedTuple):
    """A service with a database file that a test can damage."""

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
    service = Service(f"sqlite:///{file}", settings=USUAL_LIMITS, workers=2, log=log)
    service.migrate()
    with service.serving():
        service.create_demo_payments(PAYMENTS)
        yield Faulty(service, file, service.create_api_key(organization=1001, mode="live"), log)


@contextmanager
def missing(file: Path) -> Iterator[None]:
    """Move the file away within the block.

    SQLite's other files, such as the write-ahead log, move after it and return before it: the file must never be read
    without them.
    """
    paths = sorted(file.parent.glob(f"{file.name}*"))
    for path in paths:
        path.rename(path.with_name(f"away-{path.name}"))
    try:
        yield
    finally:
        for path in file.parent.glob(f"{file.name}*"):
            path.unlink()
        for path in reversed(paths):
            path.with_name(f"away-{path.name}").rename(path)


@contextmanager
def missing_and_not_created(file: Path) -> Iterator[None]:
    with missing(file):
        yield
        assert not file.exists(), "a request has created a database"


@contextmanager
def replaced(file: Path) -> Iterator[None]:
    """Replace the file by another database, like a restored backup."""
    with missing(file):
        Service(f"sqlite:///{file}").migrate()
        yield


@contextmanager
def damaged(file: Path) -> Iterator[None]:
    """Replace the file by one that is no database, like a failed copy."""
    with missing(file):
        file.write_bytes(b"nonsense" * 1024)
        yield


@pytest.mark.processes
@pytest.mark.parametrize("fault", [missing_and_not_created, damaged])
def test_unusable_file_makes_the_service_unavailable_and_is_logged(
    faulty: Faulty, fault: Callable[[Path], AbstractContextManager[None]]
) -> None:
    length_before = len(faulty.log.read_text())
    with faulty.load().running(CLIENTS) as load:
        load.wait_for(200, after=time.monotonic())
        with fault(faulty.file):
            load.wait_for_all(503, after=time.monotonic())
        load.assert_recovered(repaired_at=time.monotonic())

    load.assert_expected(seconds_max=RESPONSE_SECONDS_MAX)
    assert f"The database {faulty.file} failed" in faulty.log.read_text()[length_before:]
    load.report(fault.__name__)


@pytest.mark.extended
@pytest.mark.processes
def test_wait_for_a_locked_file_is_limited(faulty: Faulty, tmp_path: Path) -> None:
    file = tmp_path / "payments.sqlite3"
    shutil.copy(faulty.file, file)
    service = Service(f"sqlite:///{file}", settings=USUAL_LIMITS, log=tmp_path / "log")
    load = Load(service.port, service.create_api_key(organization=1001, mode="live"))
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA locking_mode = EXCLUSIVE")
        writer.execute("UPDATE payments_apikey SET name = name")
        with service.serving(), load.running(CLIENTS):
            load.wait_for_all(503, after=0)
            writer.close()
            load.assert_recovered(repaired_at=time.monotonic())

    load.assert_expected(seconds_max=RESPONSE_SECONDS_MAX)
    assert f"The database {file} failed: database is locked" in (tmp_path / "log").read_text()


@pytest.mark.processes
def test_replaced_file_is_read_by_the_next_request(faulty: Faulty) -> None:
    """Without a check, an open connection would read the removed file forever."""
    assert faulty.load().get().status == 200

    with replaced(faulty.file):
        responses = [faulty.load().get() for _ in range(CLIENTS)]

    assert {response.status for response in responses} == {401}, "the new file does not contain the key"
    assert {faulty.load().get().status for _ in range(CLIENTS)} == {200}


@pytest.mark.django_db
def test_read_only_file_in_a_read_only_directory_is_an_outage() -> None:
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
    """Run the block as a user without root's privileges."""
    user = os.geteuid()
    os.seteuid(user or UNPRIVILEGED_USER)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.extended
@pytest.mark.processes
def test_clients_read_while_an_import_writes(faulty: Faulty) -> None:
    lines = faulty.service.exported().replace('"description":"', '"description":"again ')
    end = time.monotonic() + times(0, long=300)
    with faulty.load().running(CLIENTS) as load:
        imports = 0
        while imports == 0 or time.monotonic() < end:
            faulty.service.manage("import_payments", "-", input=lines.replace("again", f"again {imports % 2}"))
            imports += 1

    assert {response.status for response in load.responses} == {200}
    load.report(f"readers during {imports} imports")


@contextmanager
def slow(file: Path) -> Iterator[None]:
    """Make every row of payments take forever."""
    endless = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers) SELECT max(n) FROM numbers"
    with closing(sqlite3.connect(file)) as other:
        other.execute("ALTER TABLE payments_payment RENAME TO payments")
        other.execute(f"CREATE VIEW payments_payment AS SELECT * FROM payments WHERE ({endless}) > 0")  # noqa: S608
        try:
            yield
        finally:
            other.execute("DROP VIEW payments_payment")
            other.execute("ALTER TABLE payments RENAME TO payments_payment")


@pytest.mark.extended
@pytest.mark.processes
def test_slow_filters_name_the_parameter_to_narrow_and_block_no_other_request(faulty: Faulty) -> None:
    with slow(faulty.file):
        assert_timeout_names_created_at(faulty.service.base_url, faulty.key)
