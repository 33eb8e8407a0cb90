"""Import and export: records per second, compared with PostgreSQL's COPY of the same rows."""

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
FEW_RECORDS = 20_000  # shows whether memory grows with the size of a file
TABLE = "payments_payment"
LOAD = ("import_payments", "--create-organizations")
KIB_PER_MB = 1024
POLL_SECONDS = 0.02


class CommandFailed(Exception):
    """A measured command has failed."""


@dataclass(frozen=True)
class CommandResult:
    """The duration of a command, including its start, and its peak memory."""

    seconds: float
    memory_mb: float


@dataclass(frozen=True)
class Files:
    """Files of the same payments."""

    records: Path
    changed: Path  # each with another description
    few: Path  # the first `FEW_RECORDS`
    none: Path  # empty
    rows: Path  # as COPY writes them


def measure_transfer(database_url: str, directory: Path, *, count: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Measure import, export and COPY of the same payments. This empties the table.

    Return the medians of the rounds, by kind and name.
    """
    count = min(count, RECORDS_MAX)
    files = write_files(directory, count)
    with psycopg.connect(database_url, autocommit=True) as connection:
        empty(connection)
        manage(database_url, *LOAD, str(files.records))
        copy_out(connection, files.rows)
    sqlite_url = f"sqlite:///{directory / 'payments.sqlite3'}"
    manage(sqlite_url, "migrate", "--verbosity", "0")
    results = [measure_round(database_url, sqlite_url, files, count=count) for _ in range(rounds)]
    return {
        kind: {name: rounded_median([result[kind][name] for result in results]) for name in results[0][kind]}
        for kind in results[0]
    }


def write_files(directory: Path, count: int) -> Files:
    files = Files(*(directory / name for name in ("records", "changed", "few", "none", "rows")))
    with files.records.open("wb") as records, files.changed.open("wb") as changed, files.few.open("wb") as few:
        for number, record in enumerate(dataset.records(count)):
            line = encode(record) + b"\n"
            records.write(line)
            changed.write(line.replace(b'"description":"', b'"description":"Paid: ', 1))
            if number < FEW_RECORDS:
                few.write(line)
    files.none.touch()
    return files


def measure_round(database_url: str, sqlite_url: str, files: Files, *, count: int) -> dict[str, dict[str, float]]:
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
    delete_database(sqlite_url)
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
    """Empty the table. Autovacuum does not start while it is filled: it would note that the table is empty."""
    connection.execute(f"TRUNCATE {TABLE}")
    connection.execute(f"VACUUM (ANALYZE) {TABLE}")
    connection.execute("CHECKPOINT")


def delete_database(sqlite_url: str) -> None:
    database = Path(sqlite_url.removeprefix("sqlite:///"))
    for path in database.parent.glob(f"{database.name}*"):
        path.unlink()


def manage(database_url: str, *command: str) -> CommandResult:
    """Run a command and discard its output.

    :raises CommandFailed: if its exit status is not 0
    """
    began = time.perf_counter()
    process = Service(database_url).popen(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    memory_mb = 0.0
    while process.poll() is None:
        memory_mb = peak_memory_mb(process.pid) or memory_mb
        time.sleep(POLL_SECONDS)
    if process.returncode:
        raise CommandFailed(f"{' '.join(command)} ended with {process.returncode}")
    return CommandResult(time.perf_counter() - began, memory_mb)


def peak_memory_mb(process_id: int) -> float | None:
    """Return the peak resident memory of a process in MB, or None if it has ended."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process_id}/status").read_text())
    return int(match[1]) / KIB_PER_MB if match else None


def copy_out(connection: psycopg.Connection[Any], path: Path) -> None:
    with path.open("wb") as file, connection.cursor().copy(f"COPY {TABLE} TO STDOUT") as copy:
        for chunk in copy:
            file.write(chunk)


def copy_in(connection: psycopg.Connection[Any], path: Path) -> float:
    """Load a file with COPY into the table, with all its indexes and constraints. Return the seconds."""
    with path.open("rb") as file:
        began = time.perf_counter()
        with connection.cursor().copy(f"COPY {TABLE} FROM STDIN") as copy:
            for chunk in chunks(file):
                copy.write(chunk)
        return time.perf_counter() - began


def chunks(file: IO[bytes]) -> Any:
    return iter(lambda: file.read(2**18), b"")


def rounded_median(values: Sequence[float]) -> float:
    median = statistics.median(values)
    return round(median, 2) if median < 10 else round(median)
