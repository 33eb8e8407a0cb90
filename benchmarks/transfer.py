"""Import and export: records a second, beside what PostgreSQL's own COPY does with the same rows."""

import re
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psycopg

from benchmarks import dataset
from payments.record import encode
from tests.support.service import Service

RECORDS_MAX = 200_000
MEMORY_RECORDS = 20_000  # what a tenth of the file takes tells whether memory grows with it
TABLE = "payments_payment"
LOAD = ("import_payments", "--create-organizations")
KIB_PER_MB = 1024
WATCHED_EVERY_SECONDS = 0.02


class CommandFailed(Exception):
    """A command that was to be measured did not do its work."""


@dataclass(frozen=True)
class Done:
    """How long a command took, its own start included, and the most memory it held."""

    seconds: float
    memory_mb: float


@dataclass(frozen=True)
class Files:
    """The same payments: as they were, each of them changed since, a tenth of them, none; and the table's own text."""

    records: Path
    changed: Path
    few: Path
    none: Path
    rows: Path


def measure_transfer(database_url: str, directory: Path, *, count: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Load the same payments again and again: as they come, changed, and by COPY alone. The table is emptied for it."""
    count = min(count, RECORDS_MAX)
    files = written(directory, count)
    with psycopg.connect(database_url, autocommit=True) as connection:
        empty(connection)
        manage(database_url, *LOAD, str(files.records))
        copy_out(connection, files.rows)
    sqlite_url = f"sqlite:///{directory / 'payments.sqlite3'}"
    manage(sqlite_url, "migrate", "--verbosity", "0")
    measured = [one_round(database_url, sqlite_url, files, count=count) for _ in range(rounds)]
    return {
        kind: {name: typical([found[kind][name] for found in measured]) for name in measured[0][kind]}
        for kind in measured[0]
    }


def written(directory: Path, count: int) -> Files:
    files = Files(*(directory / name for name in ("records", "changed", "few", "none", "rows")))
    with files.records.open("wb") as records, files.changed.open("wb") as changed, files.few.open("wb") as few:
        for number, record in enumerate(dataset.records(count)):
            line = encode(record) + b"\n"
            records.write(line)
            changed.write(line.replace(b'"description":"', b'"description":"Paid: ', 1))
            if number < MEMORY_RECORDS:
                few.write(line)
    files.none.touch()
    return files


def one_round(database_url: str, sqlite_url: str, files: Files, *, count: int) -> dict[str, dict[str, float]]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        empty(connection)
        few = manage(database_url, *LOAD, str(files.few))
        start = manage(database_url, *LOAD, str(files.none)).seconds
        empty(connection)
        copy_seconds = copy_in(connection, files.rows)
        empty(connection)
        fresh = manage(database_url, *LOAD, str(files.records))
        again = manage(database_url, *LOAD, str(files.records))
        changed = manage(database_url, *LOAD, str(files.changed))
        export = manage(database_url, "export_payments")
    sqlite = manage(sqlite_url, *LOAD, str(files.records))
    sqlite_changed = manage(sqlite_url, *LOAD, str(files.changed))
    forget(sqlite_url)
    manage(sqlite_url, "migrate", "--verbosity", "0")
    return {
        "import": {
            "records_per_second": count / (fresh.seconds - start),
            "of_copy": copy_seconds / (fresh.seconds - start),
            "unchanged_per_second": count / (again.seconds - start),
            "changed_per_second": count / (changed.seconds - start),
            "sqlite_records_per_second": count / (sqlite.seconds - start),
            "sqlite_changed_per_second": count / (sqlite_changed.seconds - start),
            "memory_mb": fresh.memory_mb,
            "memory_mb_of_a_tenth": few.memory_mb,
        },
        "export": {"records_per_second": count / (export.seconds - start), "memory_mb": export.memory_mb},
        "copy": {"records_per_second": count / copy_seconds},
    }


def empty(connection: psycopg.Connection[Any]) -> None:
    connection.execute(f"TRUNCATE {TABLE}")
    connection.execute("CHECKPOINT")


def forget(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def manage(database_url: str, *command: str) -> Done:
    """Run a command with its output thrown away.

    :raises CommandFailed: with its code
    """
    began = time.perf_counter()
    process = Service(database_url).popen(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    memory_mb = 0.0
    while process.poll() is None:
        memory_mb = most_held(process.pid) or memory_mb
        time.sleep(WATCHED_EVERY_SECONDS)
    if process.returncode:
        raise CommandFailed(f"{' '.join(command)}: {process.returncode}")
    return Done(time.perf_counter() - began, memory_mb)


def most_held(process_id: int) -> float | None:
    """Return the most memory that a process ever held, in MB; None where it has ended."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process_id}/status").read_text())
    return int(found[1]) / KIB_PER_MB if found else None


def copy_out(connection: psycopg.Connection[Any], path: Path) -> None:
    with path.open("wb") as file, connection.cursor().copy(f"COPY {TABLE} TO STDOUT") as copy:
        for chunk in copy:
            file.write(chunk)


def copy_in(connection: psycopg.Connection[Any], path: Path) -> float:
    """Let PostgreSQL load its own text into the same table, with all its indexes and constraints; return how long."""
    with path.open("rb") as file:
        began = time.perf_counter()
        with connection.cursor().copy(f"COPY {TABLE} FROM STDIN") as copy:
            for chunk in chunks(file):
                copy.write(chunk)
        return time.perf_counter() - began


def chunks(file: IO[bytes]) -> Any:
    return iter(lambda: file.read(2**18), b"")


def typical(values: Sequence[float]) -> float:
    found = statistics.median(values)
    return round(found, 2) if found < 10 else round(found)
