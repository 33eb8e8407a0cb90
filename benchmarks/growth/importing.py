"""What an import costs PostgreSQL, by how the table is kept: CPU, and what it writes to its log ahead of the table."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from django.db import connection

from benchmarks.growth.dataset import UNTIL, records
from benchmarks.growth.tables import PLAIN, TABLE, TABLES, Table, execute, leaves, used
from benchmarks.medians import median, ranged
from payments.export import export_payments
from payments.ingest import Source, import_payments
from payments.models import Payment
from payments.record import encode

NEW_RECORDS = 50_000
OLD_RECORDS = 20_000
EACH_ROUND = timedelta(days=1)
EXPORTED_AT_ONCE = 1000
LOGGED_AFTER = 10  # rounds
COMPRESSIONS = ("off", "pglz")


@dataclass(frozen=True)
class Cost:
    """Of one import, for each payment."""

    seconds: float
    cpu_seconds: float
    log_bytes: float
    log_pages: float  # written to it whole
    updated_in_place: float


def measure_importing(*, count: int, rounds: int) -> Iterator[str]:
    """Yield the lines of a table: new payments, the same once more and changed, and changed ones of any age."""
    new, old = min(NEW_RECORDS, count // 10), min(OLD_RECORDS, count // 50)
    with TemporaryDirectory() as directory:
        exported = Path(directory) / "exported"
        write(exported, lines_of(chosen(old)))
        found: dict[str, dict[str, list[Cost]]] = {}
        for number in range(rounds):
            for kind, path in files(Path(directory), exported, new=new, number=number):
                of_kind = found.setdefault(kind, {table.name: [] for table in TABLES})
                for place in range(len(TABLES)):
                    table = TABLES[(place + number) % len(TABLES)]
                    of_kind[table.name].append(cost(table, path))
                path.unlink()
    yield (
        "| imported | into the table | µs of PostgreSQL's a payment | over the whole table's "
        "| log, bytes a payment, whole pages | updated on the page |"
    )
    yield "|---|---|---|---|---|---|"
    for kind, of_kind in found.items():
        whole = of_kind[TABLES[0].name]
        for name, costs in of_kind.items():
            over = [each.cpu_seconds / its.cpu_seconds for each, its in zip(costs, whole, strict=True)]
            yield (
                f"| {kind} | {name} | {median(costs, 'cpu_seconds') * 1e6:.0f} | "
                f"{ranged(over)} | "
                f"{median(costs, 'log_bytes'):.0f}, {median(costs, 'log_pages'):.2f} | "
                f"{median(costs, 'updated_in_place'):.0%} |"
            )


def files(directory: Path, exported: Path, *, new: int, number: int) -> Iterator[tuple[str, Path]]:
    """Yield what a round imports; of the same kind in no two rounds the same."""
    fresh, again, old = (directory / name for name in ("fresh", "again", "old"))
    until = UNTIL + EACH_ROUND * (number + 1)
    of_round = records(new + number, until=until, span=EACH_ROUND, first_order=10**9)
    write(fresh, (encode(record) + b"\n" for record in of_round))
    write(again, changed(fresh, number))
    write(old, changed(exported, number))
    yield f"{new:,} new", fresh
    yield "the same, changed", again
    yield f"{sum(1 for _ in old.open('rb')):,} of any age, changed", old


def write(path: Path, lines: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        file.writelines(lines)


def changed(path: Path, number: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            yield line.replace(b'"description":"', f'"description":"Round {number}: '.encode(), 1)


def chosen(count: int) -> list[str]:
    """Return the ids of about so many payments from all over the table."""
    [(all_of_them,)] = execute("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", [TABLE])
    share = 100 * count / all_of_them
    return [found for (found,) in execute(f"SELECT id FROM {TABLE} TABLESAMPLE BERNOULLI ({share:f})")]  # noqa: S608


def lines_of(ids: list[str]) -> Iterator[bytes]:
    for begin in range(0, len(ids), EXPORTED_AT_ONCE):
        yield from export_payments(Payment.objects.filter(id__in=ids[begin : begin + EXPORTED_AT_ONCE]))


def measure_log(*, count: int) -> Iterator[str]:
    """Yield the lines of a table: the log of new payments, while pages are written to it whole and when they were."""
    new = min(NEW_RECORDS, count // 10)
    yield "| `wal_compression` | log, bytes a payment, whole pages: behind a checkpoint | the next import's | µs |"
    yield "|---|---|---|---|"
    with TemporaryDirectory() as directory:
        for number, compression in enumerate(COMPRESSIONS):
            execute(f"SET wal_compression TO {compression}")
            costs = []
            for half, is_behind in enumerate((True, False)):
                path = Path(directory) / f"{compression}{half}"
                until = UNTIL + EACH_ROUND * (LOGGED_AFTER + number)
                of_half = records(new + half, until=until, span=EACH_ROUND, first_order=10**9)
                write(path, (encode(record) + b"\n" for record in of_half))
                costs.append(cost(PLAIN, path, is_behind_checkpoint=is_behind))
            log = " | ".join(f"{each.log_bytes:.0f}, {each.log_pages:.2f}" for each in costs)
            yield f"| {compression} | {log} | {', '.join(f'{each.cpu_seconds * 1e6:.0f}' for each in costs)} |"
    execute("RESET wal_compression")


def cost(table: Table, path: Path, *, is_behind_checkpoint: bool = True) -> Cost:
    """Import a file, and return what it took for each payment of it."""
    if is_behind_checkpoint:
        execute("CHECKPOINT")
    with used(table), path.open("rb") as stream:
        server = psutil.Process(connection.connection.info.backend_pid)
        before = cpu_seconds(server), *logged(), in_place(table)
        began = time.perf_counter()
        imported = import_payments([Source(path.name, stream)], on_refused=refused, create_organizations=True)
        seconds = time.perf_counter() - began
        after = cpu_seconds(server), *logged(), in_place(table)
    assert imported.changed == imported.read, (table.name, imported)
    each = 1 / imported.read
    return Cost(seconds * each, *(float(late - early) * each for early, late in zip(before, after, strict=True)))


def cpu_seconds(server: psutil.Process) -> float:
    used = server.cpu_times()
    found: float = used.user + used.system
    return found


def logged() -> tuple[int, int]:
    """Return how many bytes this connection has written to the log, and how many pages as a whole."""
    execute("SELECT pg_stat_force_next_flush()")
    [found] = execute("SELECT wal_bytes, wal_fpi FROM pg_stat_get_backend_wal(pg_backend_pid())")
    return int(found[0]), int(found[1])


def in_place(table: Table) -> int:
    """Return how many updates found room on the payment's own page and changed no index."""
    [(found,)] = execute(
        "SELECT sum(pg_stat_get_tuples_hot_updated(part::regclass)) FROM unnest(%s::text[]) AS part", [leaves(table)]
    )
    return int(found)


def refused(place: object, error: object) -> None:
    raise AssertionError(f"{place}: {error}")
