"""An import that is interrupted at any moment writes all payments or none, and a second import completes it.

IMPORT_FAULTS_SEED repeats the moments of a run.
"""

import fcntl
import os
import random
import re
import resource
import secrets
import signal
import sqlite3
import subprocess
import sys
import termios
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, LiteralString

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from tests.support.factories import OrganizationFactory
from tests.support.lines import RECORD, line
from tests.support.migrated import fresh_database
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.scale import IS_LONG, report, times
from tests.support.service import Service
from tests.support.waiting import SECONDS_MAX, wait_until

pytestmark = pytest.mark.only("sqlite")

# More than one batch of an import, so that a batch is written before the file ends.
UNCHANGED, CHANGED, NEW = (4000, 6000, 1000) if IS_LONG else (2000, 3500, 500)
CARD = dict(sorted(RECORD["details"].items()))  # in the order of the API, for the fast path
COUNT = UNCHANGED + CHANGED + NEW
DISK_BYTES = 2**20

PIECE_BYTES = 2**18
ENDING_SECONDS = 0.5  # an import ends within this time after it has read its input

EVERYTHING = "SELECT description, * FROM payments_payment ORDER BY id"
SUMMARY = "SELECT description, count(*) FROM payments_payment GROUP BY description ORDER BY description"

INTERRUPTED = "CommandError: Interrupted. Nothing was changed.\n"
OUTCOME_UNKNOWN = (
    "CommandError: Interrupted during the commit: either all payments were written or none. Run the import again.\n"
)

# Python ignores an exception in the callback of a weak reference, and says so. The import goes on.
IGNORED_BY_PYTHON = re.compile(r"(?s)Exception ignored .*?\nKeyboardInterrupt:? ?\n")

Rows = tuple[tuple[Any, ...], ...]
Process = subprocess.Popen[bytes]


@dataclass
class Files:
    """A series of files. Each file contains new, changed and unchanged payments."""

    directory: Path
    expected: dict[str, bytes] = field(default_factory=dict)  # the records after all files are imported, by payment ID
    count: int = 0

    def next(self) -> Path:
        self.count += 1
        descriptions = {
            **{f"pt_unchanged{number}": "" for number in range(UNCHANGED)},
            **{f"pt_changed{number}": f"file {self.count}" for number in range(CHANGED)},
            **{f"pt_new{self.count}x{number}": "" for number in range(NEW)},
        }
        lines = {
            payment_id: line(id=payment_id, description=description, details=CARD)
            for payment_id, description in descriptions.items()
        }
        self.expected |= lines
        shuffled = random.Random(self.count).sample([*lines.values()], COUNT)  # noqa: S311
        file = self.directory / f"{self.count}.jsonl"
        file.write_bytes(b"".join(text + b"\n" for text in shuffled))
        return file

    @property
    def exported(self) -> str:
        ids = sorted(self.expected, reverse=True)
        return b"".join(self.expected[payment_id] + b"\n" for payment_id in ids).decode()


@dataclass(frozen=True)
class Imports:
    """A service and the files for its imports."""

    service: Service
    files: Files

    @property
    def is_intact(self) -> bool:
        is_sqlite = self.service.database_url.startswith("sqlite")
        return not is_sqlite or self.read("PRAGMA integrity_check") == (("ok",),)

    def prepare(self) -> None:
        self.service.create_organization(1)
        self.service.create_api_key(organization=1, mode="live")  # otherwise, an import suggests it
        self.service.import_records(self.files.next().read_bytes().splitlines())

    def start(self) -> Process:
        """Start an import that reads stdin."""
        return self.service.popen("import_payments", "-", stdin=subprocess.PIPE)

    def read(self, query: LiteralString) -> Rows:
        """Run a query on a connection of its own."""
        url = self.service.database_url
        if url.startswith("sqlite:///"):
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
                database.create_function("REGEXP", 2, lambda pattern, text: bool(re.search(pattern, text)))
                return tuple(database.execute(query))
        with psycopg.connect(url) as server:
            return tuple(server.execute(query))

    def complete(self, file: Path) -> Rows:
        """Import a file again and check that it is complete. Return the rows."""
        lines = file.read_bytes().splitlines()
        self.service.import_records(lines)
        assert self.service.exported() == self.files.exported
        again = self.service.import_records(lines)
        assert (again.read, again.written, again.refused) == (COUNT, 0, 0)
        return self.read(EVERYTHING)


@dataclass(frozen=True)
class Interruption:
    """The rows before and after an interrupted import, the summaries during the import, and its result."""

    before: Rows
    summaries: set[Rows]
    after: Rows
    returncode: int
    message: str


def interrupt_import(
    imports: Imports,
    file: Path,
    *,
    rng: random.Random,
    fault: Callable[[Process], None],
    repair: Callable[[], None] = lambda: None,
) -> Interruption:
    """Cause a fault after an import has read a random part of a file, or while the import ends."""
    content = file.read_bytes()
    position = rng.choice([rng.randrange(len(content)), len(content)])
    before = imports.read(EVERYTHING)
    summaries = {imports.read(SUMMARY)}
    process = imports.start()
    assert process.stdin is not None
    for start in range(0, position, PIECE_BYTES):
        process.stdin.write(content[start : min(start + PIECE_BYTES, position)])  # waits until most of it is read
        summaries.add(imports.read(SUMMARY))
    if position == len(content):
        process.stdin.close()
        process.stdin = None
        time.sleep(rng.uniform(0, ENDING_SECONDS))
    fault(process)
    _, message = process.communicate(content[position:])
    repair()
    summaries.add(imports.read(SUMMARY))
    return Interruption(before, summaries, imports.read(EVERYTHING), process.returncode, message.decode())


def summary(rows: Rows) -> Rows:
    """Return the result of `SUMMARY` for these rows."""
    return tuple(sorted(Counter(description for description, *_ in rows).items()))


def is_all_or_nothing(interruption: Interruption, completed: Rows) -> bool:
    """Return whether all readers have seen only the state before the import or the state after a complete import."""
    before = interruption.before
    return interruption.after in {before, completed} and interruption.summaries <= {summary(before), summary(completed)}


@pytest.fixture
def rng() -> random.Random:
    seed = os.environ.get("IMPORT_FAULTS_SEED") or secrets.token_hex(4)
    sys.stderr.write(f"IMPORT_FAULTS_SEED={seed}\n")
    return random.Random(seed)  # noqa: S311  reproducible, not for security


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imports]:
    directory = tmp_path_factory.mktemp("faults")
    with fresh_database(directory) as url:
        imports = Imports(Service(url), Files(directory))
        imports.prepare()
        yield imports


@pytest.fixture(scope="module")
def server() -> Iterator[BreakablePostgresql]:
    with breakable_postgresql() as server:
        yield server


@pytest.fixture(scope="module")
def on_server(server: BreakablePostgresql, tmp_path_factory: pytest.TempPathFactory) -> Imports:
    imports = Imports(Service(server.url), Files(tmp_path_factory.mktemp("crashes")))
    imports.service.migrate()
    imports.prepare()
    return imports


@pytest.mark.processes
@pytest.mark.only("sqlite", "postgresql")
def test_killed_import_writes_all_or_nothing_and_can_be_repeated(imports: Imports, rng: random.Random) -> None:
    outcomes = Counter[str]()
    for _ in range(times(2, long=50)):
        file = imports.files.next()

        interruption = interrupt_import(imports, file, rng=rng, fault=Process.kill)

        assert imports.is_intact
        completed = imports.complete(file)
        assert is_all_or_nothing(interruption, completed)
        outcomes["all" if interruption.after == completed else "nothing"] += 1
    report(f"{outcomes.total()} imports killed; written: {dict(outcomes)}")


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.only("sqlite", "postgresql")
def test_message_of_an_interrupted_import_is_true_at_any_moment(imports: Imports, rng: random.Random) -> None:
    outcomes = Counter[str]()
    for _ in range(times(1, long=50)):
        file = imports.files.next()

        interruption = interrupt_import(imports, file, rng=rng, fault=send_interrupt)

        completed = imports.complete(file)
        assert is_all_or_nothing(interruption, completed)
        finished = (
            f"{COUNT} records read: {NEW} payments created, {CHANGED} changed (description {CHANGED}), "
            f"{UNCHANGED} unchanged, 0 refused.\n"
        )
        message = IGNORED_BY_PYTHON.sub("", interruption.message)
        assert interruption.returncode in {0, 130, -signal.SIGINT}
        assert (message, interruption.after) in {
            # before the import, during the import, during the commit
            *((message, interruption.before) for message in ("", INTERRUPTED, OUTCOME_UNKNOWN)),
            *((message, completed) for message in ("", OUTCOME_UNKNOWN, finished)),
        }
        outcomes[message.strip()] += 1
    report(f"{outcomes.total()} imports interrupted; their messages: {dict(outcomes)}")


def send_interrupt(process: Process) -> None:
    process.send_signal(signal.SIGINT)


@pytest.fixture
def default_interrupts() -> Iterator[None]:
    """Handle SIGINT as Python does by default. The test runner may have changed it."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.django_db(transaction=True)
def test_interrupt_within_a_python_function_of_sqlite_is_reported(tmp_path: Path, default_interrupts: None) -> None:
    OrganizationFactory.create(id=1)
    (tmp_path / "file").write_bytes(line())
    connection.connection.create_function("REGEXP", 2, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        with pytest.raises(CommandError, match=r"Interrupted\. Nothing was changed\.") as error:
            call_command("import_payments", str(tmp_path / "file"))
    finally:
        connection.close()

    assert error.value.returncode == 130
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.django_db(transaction=True)
def test_error_within_a_python_function_of_sqlite_is_not_an_interrupt(tmp_path: Path) -> None:
    OrganizationFactory.create(id=1)
    (tmp_path / "file").write_bytes(line())
    connection.connection.create_function("REGEXP", 2, lambda *_: 1 // 0)
    try:
        with pytest.raises(CommandError, match=r"The database failed, and nothing was changed: ") as error:
            call_command("import_payments", str(tmp_path / "file"))
    finally:
        connection.close()

    assert error.value.returncode == 1


def unread_bytes(pipe: IO[bytes]) -> int:
    """Return how many bytes of a pipe its reader has not read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.only("sqlite", "postgresql")
def test_interrupt_while_reading_is_reported_in_one_line(imports: Imports) -> None:
    before = imports.read(EVERYTHING)
    process = imports.start()
    assert process.stdin is not None
    file = imports.files.next()
    process.stdin.write(file.read_bytes())  # more than a pipe holds, so the import reads
    pipe = process.stdin
    wait_until(lambda: unread_bytes(pipe) == 0)

    send_interrupt(process)

    assert process.wait(timeout=SECONDS_MAX) == 130
    _, message = process.communicate()
    assert message.decode() == INTERRUPTED
    assert imports.read(EVERYTHING) == before
    imports.complete(file)


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.only("postgresql")
def test_crash_of_the_server_leaves_all_or_nothing_and_is_reported_in_one_line(
    server: BreakablePostgresql, on_server: Imports, rng: random.Random
) -> None:
    outcomes = Counter[str]()
    for _ in range(times(1, long=20)):
        file = on_server.files.next()

        interruption = interrupt_import(
            on_server,
            file,
            rng=rng,
            fault=lambda _: rng.choice([server.kill, server.stop_immediately])(),
            repair=server.start,
        )

        completed = on_server.complete(file)
        assert is_all_or_nothing(interruption, completed)
        assert len(interruption.message.splitlines()) == 1
        if "nothing was changed" in interruption.message:
            assert (interruption.returncode, interruption.after) == (1, interruption.before)
        outcomes[interruption.message.strip()] += 1
    report(f"{outcomes.total()} database crashes; the messages of the imports: {dict(outcomes)}")


@pytest.mark.extended
@pytest.mark.processes
@pytest.mark.only("postgresql")
@pytest.mark.parametrize("returncode", [130, 1])
def test_fault_during_the_commit_is_reported_as_unknown_outcome(
    server: BreakablePostgresql, on_server: Imports, returncode: int
) -> None:
    before = on_server.read(EVERYTHING)
    file = on_server.files.next()
    server.configure("synchronous_standby_names", "missing")  # a commit waits for a standby that does not exist
    try:
        process = on_server.service.popen("import_payments", str(file))
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        wait_until(lambda: process.poll() is not None or on_server.read(waiting))
        assert process.poll() is None
        if returncode == 130:
            send_interrupt(process)
        else:
            server.kill()
        _, message = process.communicate()
        if returncode == 1:
            server.start()
    finally:
        server.configure("synchronous_standby_names", "")
    assert (process.returncode, message.decode()) == (returncode, OUTCOME_UNKNOWN)
    assert before != on_server.read(EVERYTHING) == on_server.complete(file)


@pytest.mark.processes
def test_full_disk_changes_nothing_and_is_reported_in_one_line(imports: Imports) -> None:
    before = imports.read(EVERYTHING)
    file = imports.files.next()

    process = imports.service.popen(
        "import_payments",
        str(file),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (DISK_BYTES, DISK_BYTES)),
    )

    _, message = process.communicate()
    assert process.returncode == 1
    path = imports.service.database_url.removeprefix("sqlite:///")
    assert message.decode() == (
        f"CommandError: The database failed, and nothing was changed: {path}: disk I/O error."
        " Check the free space and the state of the disk, and the maximum size of files.\n"
    )
    assert imports.read(EVERYTHING) == before
    imports.complete(file)
