"""An import that is cut off at any moment: all of it is there or nothing, and running it again makes it whole.

IMPORT_FAULTS_SEED repeats the moments of a run.
"""

import os
import random
import re
import resource
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from tests.support.factories import OrganizationFactory
from tests.support.lines import RECORD, line
from tests.support.migrated import fresh_database
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.processes import ROOT, STOP_SECONDS_MAX
from tests.support.scale import IS_LONG, report, times
from tests.support.service import Service

# More than one batch of an import, so that a batch is written before the file ends.
UNCHANGED, CHANGED, NEW = (4000, 6000, 1000) if IS_LONG else (2000, 3500, 500)
CARD = dict(sorted(RECORD["details"].items()))  # as the API writes it
COUNT = UNCHANGED + CHANGED + NEW
DISK_BYTES = 2**20

PIECE_BYTES = 2**18
ENDING_SECONDS = 0.5  # by then, an import that has read all has ended
LOOK_EVERY_SECONDS = 0.05
WAITING_SECONDS = 0.5  # after this, what could be read has been

EVERYTHING = "SELECT description, * FROM payments_payment ORDER BY id"
SUMMARY = "SELECT description, count(*) FROM payments_payment GROUP BY description ORDER BY description"

INTERRUPTED = "CommandError: Interrupted; nothing was changed.\n"
CUT_OFF = (
    "CommandError: Cut off at the very end: either everything was written or nothing. Import it again to make sure.\n"
)

Rows = tuple[tuple[Any, ...], ...]
Importing = subprocess.Popen[bytes]


@dataclass
class Files:
    """File after file: each has payments that it adds, changes, and leaves as they were."""

    directory: Path
    held: dict[str, bytes] = field(default_factory=dict)  # what is right once all of them are imported
    count: int = 0

    def next(self) -> Path:
        self.count += 1
        descriptions = {
            **{f"pt_unchanged{number}": "" for number in range(UNCHANGED)},
            **{f"pt_changed{number}": f"file {self.count}" for number in range(CHANGED)},
            **{f"pt_new{self.count}x{number}": "" for number in range(NEW)},
        }
        lines = {name: line(id=name, description=words, details=CARD) for name, words in descriptions.items()}
        self.held |= lines
        shuffled = random.Random(self.count).sample([*lines.values()], COUNT)  # noqa: S311
        file = self.directory / f"{self.count}.jsonl"
        file.write_bytes(b"".join(text + b"\n" for text in shuffled))
        return file

    @property
    def exported(self) -> str:
        return b"".join(self.held[name] + b"\n" for name in sorted(self.held, reverse=True)).decode()


@dataclass(frozen=True)
class Imports:
    """A service whose imports are cut off."""

    service: Service
    files: Files

    @property
    def is_sound(self) -> bool:
        is_sqlite = self.service.database_url.startswith("sqlite")
        return not is_sqlite or self.read("PRAGMA integrity_check") == (("ok",),)

    def prepare(self) -> None:
        self.service.create_organization(1)
        self.service.create_api_key(organization=1, mode="live")  # or an import would speak of that
        self.service.import_records(self.files.next().read_bytes().splitlines())

    def begin(self) -> Importing:
        """Begin an import that reads what it is given."""
        return self.service.popen("import_payments", "-", stdin=subprocess.PIPE)

    def begin_batch_by_batch(self, file: Path) -> Importing:
        """Begin an import that has forgotten what "all or nothing" means."""
        return subprocess.Popen(
            [ROOT / ".venv/bin/python", "-c", BATCH_BY_BATCH, file],
            cwd=ROOT,
            env={**self.service.environment, "DJANGO_SETTINGS_MODULE": "payments_site.settings"},
            stderr=subprocess.PIPE,
        )

    def read(self, query: LiteralString) -> Rows:
        """Ask the database, as any other of its readers may."""
        url = self.service.database_url
        if url.startswith("sqlite:///"):
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
                database.create_function("REGEXP", 2, lambda pattern, text: bool(re.search(pattern, text)))
                return tuple(database.execute(query))
        with psycopg.connect(url) as server:
            return tuple(server.execute(query))

    def make_whole(self, file: Path) -> Rows:
        """Import a file again, and once more, and return the rows, which are right then."""
        lines = file.read_bytes().splitlines()
        self.service.import_records(lines)
        assert self.service.exported() == self.files.exported
        again = self.service.import_records(lines)
        assert (again.read, again.changed, again.refused) == (COUNT, 0, 0)
        return self.read(EVERYTHING)


BATCH_BY_BATCH = """
import sys
from pathlib import Path

import django
from django.db import transaction

django.setup()
from payments.ingest.batches import read_batches
from payments.ingest.reading import Source
from payments.ingest.writing import prepare_transaction, write_rows

with Path(sys.argv[1]).open("rb") as stream:
    for batch in read_batches([Source("file", stream)]):
        for located_rows in batch.rounds:
            with transaction.atomic():
                key = prepare_transaction()
                write_rows([row for _, row in located_rows], key=key)
"""


@dataclass(frozen=True)
class CutOff:
    """What was there before an import, what others saw while it went on, what it left, and its last words."""

    before: Rows
    seen: set[Rows]
    left: Rows
    returncode: int
    words: str


def cut_off(
    imports: Imports,
    file: Path,
    *,
    chance: random.Random,
    fault: Callable[[Importing], None],
    repair: Callable[[], None] = lambda: None,
) -> CutOff:
    """Let a fault befall an import that has read some part of a file, or is about to end."""
    content = file.read_bytes()
    position = chance.choice([chance.randrange(len(content)), len(content)])
    before = imports.read(EVERYTHING)
    seen = {imports.read(SUMMARY)}
    importing = imports.begin()
    assert importing.stdin is not None
    for start in range(0, position, PIECE_BYTES):
        importing.stdin.write(content[start : min(start + PIECE_BYTES, position)])  # waits until most of it is read
        seen.add(imports.read(SUMMARY))
    if position == len(content):
        importing.stdin.close()
        importing.stdin = None
        time.sleep(chance.uniform(0, ENDING_SECONDS))
    fault(importing)
    _, words = importing.communicate(content[position:])
    repair()
    seen.add(imports.read(SUMMARY))
    return CutOff(before, seen, imports.read(EVERYTHING), importing.returncode, words.decode())


def summary(rows: Rows) -> Rows:
    """Return what `SUMMARY` says of these rows."""
    return tuple(sorted(Counter(description for description, *_ in rows).items()))


def is_all_or_nothing(found: CutOff, after: Rows) -> bool:
    """Tell whether what was left, and what anybody saw, is as before or as after the import."""
    return found.left in {found.before, after} and found.seen <= {summary(found.before), summary(after)}


@pytest.fixture
def chance() -> random.Random:
    seed = os.environ.get("IMPORT_FAULTS_SEED") or secrets.token_hex(4)
    sys.stderr.write(f"IMPORT_FAULTS_SEED={seed}\n")
    return random.Random(seed)  # noqa: S311  repeatable, and nobody's secret


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


def test_a_killed_import_leaves_all_or_nothing_and_running_it_again_the_right_rows(
    imports: Imports, chance: random.Random
) -> None:
    outcomes = Counter[str]()
    for _ in range(times(2, long=50)):
        file = imports.files.next()

        found = cut_off(imports, file, chance=chance, fault=Importing.kill)

        assert imports.is_sound
        after = imports.make_whole(file)
        assert is_all_or_nothing(found, after)
        outcomes["all" if found.left == after else "nothing"] += 1
    report(f"{outcomes.total()} imports killed; what was written: {dict(outcomes)}")


def test_an_import_that_commits_batch_by_batch_would_be_found_out(imports: Imports) -> None:
    before, summary_before = imports.read(EVERYTHING), imports.read(SUMMARY)
    file = imports.files.next()
    importing = imports.begin_batch_by_batch(file)
    while (seen := imports.read(SUMMARY)) == summary_before:
        assert importing.poll() is None
        time.sleep(0.01)  # the next batch follows soon

    importing.kill()
    importing.communicate()

    found = CutOff(before, {seen}, imports.read(EVERYTHING), importing.returncode, "")
    assert not is_all_or_nothing(found, after=imports.make_whole(file))


def test_an_import_interrupted_at_any_moment_says_truly_what_it_has_done(
    imports: Imports, chance: random.Random
) -> None:
    outcomes = Counter[str]()
    for _ in range(times(1, long=50)):
        file = imports.files.next()

        found = cut_off(imports, file, chance=chance, fault=interrupt)

        after = imports.make_whole(file)
        assert is_all_or_nothing(found, after)
        ended = f"{COUNT} records read: {CHANGED + NEW} payments written, 0 refused.\n"
        assert found.returncode in {0, 130, -signal.SIGINT}
        assert (found.words, found.left) in {
            *((words, found.before) for words in ("", INTERRUPTED, CUT_OFF)),  # it had not begun; was at it; at its end
            *((words, after) for words in ("", CUT_OFF, ended)),
        }
        outcomes[found.words.strip()] += 1
    report(f"{outcomes.total()} imports interrupted; what they said: {dict(outcomes)}")


def interrupt(importing: Importing) -> None:
    importing.send_signal(signal.SIGINT)


@pytest.mark.django_db(transaction=True)
def test_an_import_interrupted_within_a_function_of_sqlites_says_so_too(tmp_path: Path) -> None:
    def interrupt_it(*_arguments: object) -> None:
        raise KeyboardInterrupt

    OrganizationFactory.create(id=1)
    (tmp_path / "file").write_bytes(line())
    connection.connection.create_function("REGEXP", 2, interrupt_it)
    try:
        with pytest.raises(CommandError, match="Interrupted; nothing was changed") as error:
            call_command("import_payments", str(tmp_path / "file"))
    finally:
        connection.close()

    assert error.value.returncode == 130


def test_an_import_that_is_interrupted_while_it_reads_says_so_in_one_line(imports: Imports) -> None:
    before = imports.read(EVERYTHING)
    importing = imports.begin()
    assert importing.stdin is not None
    importing.stdin.write(imports.files.next().read_bytes())  # more than a pipe holds: it has begun to read
    time.sleep(WAITING_SECONDS)

    interrupt(importing)

    assert importing.wait(timeout=STOP_SECONDS_MAX) == 130
    _, words = importing.communicate()
    assert words.decode() == INTERRUPTED
    assert imports.read(EVERYTHING) == before


def test_an_import_whose_server_crashes_leaves_all_or_nothing_and_says_so_in_one_line(
    server: BreakablePostgresql, on_server: Imports, chance: random.Random
) -> None:
    outcomes = Counter[str]()
    for _ in range(times(1, long=20)):
        file = on_server.files.next()

        found = cut_off(
            on_server,
            file,
            chance=chance,
            fault=lambda _: chance.choice([server.kill, server.stop_immediately])(),
            repair=server.start,
        )

        after = on_server.make_whole(file)
        assert is_all_or_nothing(found, after)
        assert len(found.words.splitlines()) == 1
        if "nothing was changed" in found.words:
            assert (found.returncode, found.left) == (1, found.before)
        outcomes[found.words.strip()] += 1
    report(f"{outcomes.total()} database crashes; what the imports said: {dict(outcomes)}")


@pytest.mark.parametrize("returncode", [130, 1])
def test_an_import_that_is_cut_off_while_the_server_commits_does_not_say_that_nothing_was_changed(
    server: BreakablePostgresql, on_server: Imports, returncode: int
) -> None:
    before = on_server.read(EVERYTHING)
    file = on_server.files.next()
    server.configure("synchronous_standby_names", "nobody")  # what is committed waits for one who never comes
    importing = on_server.service.popen("import_payments", str(file))
    while not on_server.read("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"):
        assert importing.poll() is None
        time.sleep(LOOK_EVERY_SECONDS)

    if returncode == 130:
        interrupt(importing)
    else:
        server.kill()
    _, words = importing.communicate()

    if returncode == 1:
        server.start()
    server.configure("synchronous_standby_names", "")
    assert (importing.returncode, words.decode()) == (returncode, CUT_OFF)
    assert before != on_server.read(EVERYTHING) == on_server.make_whole(file)


def test_an_import_onto_a_full_disk_changes_nothing_and_says_so_in_one_line(imports: Imports) -> None:
    before = imports.read(EVERYTHING)
    file = imports.files.next()

    importing = imports.service.popen(
        "import_payments",
        str(file),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (DISK_BYTES, DISK_BYTES)),
    )

    _, words = importing.communicate()
    assert importing.returncode == 1
    assert words.decode() == "CommandError: The database failed, and nothing was changed: disk I/O error\n"
    assert imports.read(EVERYTHING) == before
