"""Cost of an import by variant of the table: PostgreSQL's processor time, and the write-ahead log (WAL)."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from django.db import connection

from benchmarks.growth.dataset import UNTIL, records
from benchmarks.growth.tables import PLAIN, TABLE, TABLES, Table, execute, leaves, selected
from benchmarks.medians import median, median_and_range
from payments.export import export_payments
from payments.ingest import Source, import_payments
from payments.models import Payment
from payments.record import encode

NEW_RECORDS = 50_000
OLD_RECORDS = 20_000
ROUND_SPAN = timedelta(days=1)  # the payments of a round were created within this time
EXPORT_BATCH = 1000
WAL_ROUND = 10  # after all rounds of the imports
COMPRESSIONS = ("off", "pglz")


@dataclass(frozen=True)
class Cost:
    """The cost of an import per payment."""

    seconds: float
    cpu_seconds: float
    wal_bytes: float
    wal_pages: float  # full pages in the log
    hot_updates: float


def measure_importing(*, count: int, rounds: int) -> Iterator[str]:
    """Yield the lines of a table: imports of new payments, of their changes, and of changes to payments of any age."""
    new, old = min(NEW_RECORDS, count // 10), min(OLD_RECORDS, count // 50)
    with TemporaryDirectory() as directory:
        exported = Path(directory) / "exported"
        write(exported, export_lines(sample_ids(old)))
        costs_of: dict[str, dict[str, list[Cost]]] = {}
        for number in range(rounds):
            for kind, path in files(Path(directory), exported, new=new, number=number):
                costs = costs_of.setdefault(kind, {table.name: [] for table in TABLES})
                for offset in range(len(TABLES)):
                    table = TABLES[(offset + number) % len(TABLES)]
                    costs[table.name].append(measure(table, path))
                path.unlink()
    yield (
        "| imported | into the table | CPU µs of PostgreSQL per payment | compared with the whole table "
        "| WAL per payment: bytes, full pages | HOT updates |"
    )
    yield "|---|---|---|---|---|---|"
    for kind, by_table in costs_of.items():
        plain_costs = by_table[PLAIN.name]
        for name, table_costs in by_table.items():
            ratios = [
                cost.cpu_seconds / plain.cpu_seconds for cost, plain in zip(table_costs, plain_costs, strict=True)
            ]
            yield (
                f"| {kind} | {name} | {median(table_costs, 'cpu_seconds') * 1e6:.0f} | "
                f"{median_and_range(ratios)} | "
                f"{median(table_costs, 'wal_bytes'):.0f}, {median(table_costs, 'wal_pages'):.2f} | "
                f"{median(table_costs, 'hot_updates'):.0%} |"
            )


def files(directory: Path, exported: Path, *, new: int, number: int) -> Iterator[tuple[str, Path]]:
    """Yield the files that a round imports. Their content differs from round to round."""
    created, changed, old = (directory / name for name in ("created", "changed", "old"))
    until = UNTIL + ROUND_SPAN * (number + 1)
    new_records = records(new + number, until=until, span=ROUND_SPAN, first_order=10**9)
    write(created, (encode(record) + b"\n" for record in new_records))
    write(changed, changed_lines(created, number))
    write(old, changed_lines(exported, number))
    yield f"{new:,} new", created
    yield "the same, changed", changed
    yield f"{sum(1 for _ in old.open('rb')):,} of any age, changed", old


def write(path: Path, lines: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(lines)


def changed_lines(path: Path, number: int) -> Iterator[bytes]:
    """Yield the records of a file with another description."""
    with path.open("rb") as file:
        for line in file:
            yield line.replace(b'"description":"', f'"description":"Round {number}: '.encode(), 1)


def sample_ids(count: int) -> list[str]:
    """Return the IDs of about `count` payments from everywhere in the table."""
    [(estimate,)] = execute("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", [TABLE])
    percentage = 100 * count / estimate
    rows = execute(f"SELECT id FROM {TABLE} TABLESAMPLE BERNOULLI ({percentage:f})")  # noqa: S608
    return [payment_id for (payment_id,) in rows]


def export_lines(ids: list[str]) -> Iterator[bytes]:
    for start in range(0, len(ids), EXPORT_BATCH):
        yield from export_payments(Payment.objects.filter(id__in=ids[start : start + EXPORT_BATCH]))


def measure_wal(*, count: int) -> Iterator[str]:
    """Yield the lines of a table: the log of an import right after a checkpoint, and of the next import."""
    new = min(NEW_RECORDS, count // 10)
    yield "| `wal_compression` | WAL per payment: bytes, full pages, after a checkpoint | of the next import | CPU µs |"
    yield "|---|---|---|---|"
    with TemporaryDirectory() as directory:
        for number, compression in enumerate(COMPRESSIONS):
            execute(f"SET wal_compression TO {compression}")
            costs = []
            for half, is_after_checkpoint in enumerate((True, False)):
                path = Path(directory) / f"{compression}{half}"
                until = UNTIL + ROUND_SPAN * (WAL_ROUND + number)
                new_records = records(new + half, until=until, span=ROUND_SPAN, first_order=10**9)
                write(path, (encode(record) + b"\n" for record in new_records))
                costs.append(measure(PLAIN, path, is_after_checkpoint=is_after_checkpoint))
            log = " | ".join(f"{cost.wal_bytes:.0f}, {cost.wal_pages:.2f}" for cost in costs)
            yield f"| {compression} | {log} | {', '.join(f'{cost.cpu_seconds * 1e6:.0f}' for cost in costs)} |"
    execute("RESET wal_compression")


def measure(table: Table, path: Path, *, is_after_checkpoint: bool = True) -> Cost:
    """Import a file into a table, and return the cost per payment."""
    if is_after_checkpoint:
        execute("CHECKPOINT")
    with selected(table), path.open("rb") as stream:
        server = psutil.Process(connection.connection.info.backend_pid)
        before = cpu_seconds(server), *wal_written(), hot_updates(table)
        began = time.perf_counter()
        result = import_payments([Source(path.name, stream)], on_refused=fail, create_organizations=True)
        seconds = time.perf_counter() - began
        after = cpu_seconds(server), *wal_written(), hot_updates(table)
    assert result.changed == result.read, (table.name, result)
    differences = [float(end - start) / result.read for start, end in zip(before, after, strict=True)]
    return Cost(seconds / result.read, *differences)


def cpu_seconds(server: psutil.Process) -> float:
    times = server.cpu_times()
    seconds: float = times.user + times.system
    return seconds


def wal_written() -> tuple[int, int]:
    """Return the bytes and the full pages that this connection has written to the log."""
    execute("SELECT pg_stat_force_next_flush()")
    [(size, pages)] = execute("SELECT wal_bytes, wal_fpi FROM pg_stat_get_backend_wal(pg_backend_pid())")
    return int(size), int(pages)


def hot_updates(table: Table) -> int:
    """Return the number of updates that fit on the row's page and changed no index (heap-only tuples, HOT)."""
    [(updates,)] = execute(
        "SELECT sum(pg_stat_get_tuples_hot_updated(part::regclass)) FROM unnest(%s::text[]) AS part", [leaves(table)]
    )
    return int(updates)


def fail(location: object, error: object) -> None:
    raise AssertionError(f"{location}: {error}")
