"""Import and export: records per second, compared with PostgreSQL's COPY of the same rows."""

import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from tqdm import tqdm

from benchmarks import dataset
from benchmarks.database import IMPORT, CommandFailed, LoadedDatabase, log, manage, popen
from benchmarks.options import Options
from payments.record import encode

RECORDS_MAX = 200_000
ROUNDS_MAX = 5
FEW_RECORDS = 20_000  # shows whether memory grows with the size of a file
TABLE = "payments_payment"
CHUNK_BYTES = 2**18
KIB_PER_MB = 1024
POLL_SECONDS = 0.02


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


def measure_transfer(options: Options, database: LoadedDatabase) -> dict[str, Any]:
    """Measure import, export and COPY of the same payments. This empties the table.

    Return the medians of the rounds, by kind and name.
    """
    log("Measuring import and export")
    count, rounds = min(options.rows, RECORDS_MAX), min(options.rounds, ROUNDS_MAX)
    with tempfile.TemporaryDirectory(prefix="payments-transfer-") as name:
        directory = Path(name)
        files = write_files(directory, count)
        with psycopg.connect(database.url, autocommit=True) as connection:
            empty(connection)
            run(database.url, *IMPORT, files.records)
            copy_out(connection, files.rows)
        results = [
            measure_round(database.url, directory, files, count=count, index=options.drop_index)
            for _ in tqdm(range(rounds), disable=None)
        ]
    return {
        kind: {name: rounded_median([result[kind][name] for result in results]) for name in results[0][kind]}
        for kind in results[0]
    }


def write_files(directory: Path, count: int) -> Files:
    files = Files(*(directory / name for name in ("records", "changed", "few", "none", "rows")))
    lines = [encode(record) + b"\n" for record in dataset.records(count)]
    files.records.write_bytes(b"".join(lines))
    files.changed.write_bytes(b"".join(line.replace(b'"description":"', b'"description":"Paid: ', 1) for line in lines))
    files.few.write_bytes(b"".join(lines[:FEW_RECORDS]))
    files.none.touch()
    return files


def measure_round(
    database_url: str, directory: Path, files: Files, *, count: int, index: str | None
) -> dict[str, dict[str, float]]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        empty(connection)
        few = run(database_url, *IMPORT, files.few)
        start = run(database_url, *IMPORT, files.none).seconds
        empty(connection)
        copy_seconds = copy_in(connection, files.rows)
        empty(connection)
        fresh, again, changed = (
            run(database_url, *IMPORT, file) for file in (files.records, files.records, files.changed)
        )
        export = run(database_url, "export_payments")
        without = index and import_without(index, connection, database_url, files.records)
    with tempfile.TemporaryDirectory(dir=directory) as name:
        sqlite_url = f"sqlite:///{name}/payments.sqlite3"
        manage(sqlite_url, "migrate", "--verbosity", "0")
        sqlite, sqlite_changed = (run(sqlite_url, *IMPORT, file) for file in (files.records, files.changed))

    def per_second(result: CommandResult) -> float:
        return count / (result.seconds - start)

    return {
        "import": {
            "records_per_second": per_second(fresh),
            "of_copy": copy_seconds / (fresh.seconds - start),
            "unchanged_per_second": per_second(again),
            "changed_per_second": per_second(changed),
            "sqlite_records_per_second": per_second(sqlite),
            "sqlite_changed_per_second": per_second(sqlite_changed),
            "memory_mb": fresh.memory_mb,
            "memory_mb_of_a_tenth": few.memory_mb,
            **({"of_import_without_index": (without.seconds - start) / (fresh.seconds - start)} if without else {}),
        },
        "export": {"records_per_second": per_second(export), "memory_mb": export.memory_mb},
        "copy": {"records_per_second": count / copy_seconds},
    }


def import_without(index: str, connection: psycopg.Connection[Any], database_url: str, path: Path) -> CommandResult:
    """Import a file into the empty table without an index, and create the index again."""
    [(definition,)] = connection.execute("SELECT pg_get_indexdef(%s::regclass)", [index]).fetchall()
    connection.execute(f"DROP INDEX {index}")
    empty(connection)
    result = run(database_url, *IMPORT, path)
    connection.execute(definition)
    return result


def empty(connection: psycopg.Connection[Any]) -> None:
    """Empty the table. Autovacuum does not start while it is filled: it would note that the table is empty."""
    connection.execute(f"TRUNCATE {TABLE}")
    connection.execute(f"VACUUM (ANALYZE) {TABLE}")
    connection.execute("CHECKPOINT")


def run(database_url: str, *command: str | Path) -> CommandResult:
    """Run a command and discard its output.

    :raises CommandFailed: if its exit status is not 0
    """
    began = time.perf_counter()
    process = popen(database_url, *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    memory_mb = 0.0
    while process.poll() is None:
        memory_mb = peak_memory_mb(process.pid) or memory_mb
        time.sleep(POLL_SECONDS)
    if process.returncode:
        raise CommandFailed(f"{command[0]} ended with {process.returncode}")
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
            while chunk := file.read(CHUNK_BYTES):
                copy.write(chunk)
        return time.perf_counter() - began


def rounded_median(values: Sequence[float]) -> float:
    median = statistics.median(values)
    return round(median, 2) if median < 10 else round(median)
