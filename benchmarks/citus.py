"""Cost of a Citus cluster: pages and imports of clusters with 1, 2 and 4 workers, and of plain PostgreSQL.

All servers run on this machine, so the processor time of a request counts, not the number of requests per second.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import msgspec
import psycopg

from benchmarks import dataset
from benchmarks.database import CONNECTIONS_MAX, log
from benchmarks.load import Load, cpu_seconds, run_load
from benchmarks.medians import median
from benchmarks.pages import LIMITS, Positions, find_positions
from benchmarks.servers import SERVICE, RunningServer, from_path, rotated, running
from benchmarks.transfer import CommandResult, manage
from payments.record import encode
from tests.support.citus import DISTRIBUTED, LOCAL, CitusCluster, CitusServer, citus_cluster
from tests.support.connecting import connected_to
from tests.support.lines import line
from tests.support.loading import issue_key, store

WORKERS = (1, 2, 4)
PLAIN = "PostgreSQL"
NAME, PLAIN_NAME = "payments", "plain"

# The imports write the payments of so many organizations, so that every worker gets some.
ORGANIZATIONS = 16
SMALL_IMPORTS = 20


class BenchmarkServer(CitusServer):
    """A server that waits for its disk, as in production."""

    settings: ClassVar[dict[str, str]] = CitusServer.settings | {
        "fsync": "on",
        "full_page_writes": "on",
        "shared_buffers": "256MB",
        "max_wal_size": "4GB",
        "max_connections": str(CONNECTIONS_MAX),
        "citus.shard_count": "32",  # Citus's default
    }


@dataclass(frozen=True)
class Configuration:
    """A database of a cluster, on one of its servers."""

    name: str
    cluster: CitusCluster
    server: CitusServer
    database: str

    @property
    def url(self) -> str:
        return self.server.url_of(self.database)

    def cpu(self) -> tuple[float, float]:
        """Return the processor time of the coordinator and of the workers."""
        coordinator, *workers = (cpu_seconds(server.processes[0]) for server in self.cluster.servers)
        return coordinator, sum(workers)


@dataclass(frozen=True)
class PageCost:
    """Requests per second, the time of one request, and milliseconds of processor time per request."""

    requests_per_second: float
    p50_ms: float
    service_ms: float
    coordinator_ms: float
    workers_ms: float


@dataclass(frozen=True)
class ImportCost:
    """Payments per second, and microseconds of processor time per payment."""

    per_second: float
    coordinator_us: float
    workers_us: float


def name_of(workers: int) -> str:
    return f"{workers} worker{'s' if workers > 1 else ''}"


def empty(configuration: Configuration) -> None:
    with psycopg.connect(configuration.url, autocommit=True) as connection:
        connection.execute("TRUNCATE payments_payment, payments_accessstate")


def measure_citus(*, rows: int, rounds: int, seconds: int) -> Iterator[str]:
    """Yield the lines of the tables with the medians of the rounds. A first round of pages is not counted."""
    with ExitStack() as stack:
        clusters = {}
        for workers in WORKERS:
            log(f"Starting a cluster with {workers} workers")
            clusters[workers] = stack.enter_context(citus_cluster(workers=workers, server=BenchmarkServer))
        configurations = [
            Configuration(PLAIN, clusters[2], clusters[2].coordinator, PLAIN_NAME),
            *(Configuration(name_of(n), clusters[n], clusters[n].coordinator, NAME) for n in WORKERS),
        ]
        clusters[2].create_copy(LOCAL, name=PLAIN_NAME)
        for cluster in clusters.values():
            cluster.create_copy(DISTRIBUTED, name=NAME)
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="payments-citus-")))
        yield from measure_imports(configurations, directory, rows=rows, rounds=rounds)
        yield from measure_pages(configurations, rows=rows, rounds=rounds, seconds=seconds)


# Imports


def measure_imports(
    configurations: Sequence[Configuration], directory: Path, *, rows: int, rounds: int
) -> Iterator[str]:
    files = write_files(directory, rows)
    results = []
    for number in range(rounds):
        log(f"Measuring imports: round {number + 1} of {rounds}")
        results.append({each.name: import_files(each, files, rows=rows) for each in rotated(configurations, number)})
    yield "| database | import | payments/s | µs of processor per payment: coordinator | workers |"
    yield "|---|---|---|---|---|"
    for kind in files:
        for configuration in configurations:
            costs = [result[configuration.name][kind] for result in results]
            yield (
                f"| {configuration.name} | {kind} | {median(costs, 'per_second'):.0f} "
                f"| {median(costs, 'coordinator_us'):.0f} | {median(costs, 'workers_us'):.0f} |"
            )
    yield ""
    yield "| database | import of one payment, ms |"
    yield "|---|---|"
    for configuration in configurations:
        yield f"| {configuration.name} | {small_import_ms(configuration):.1f} |"
    yield ""


def write_files(directory: Path, rows: int) -> Mapping[str, Path]:
    """Write the same payments twice: as new ones, and with other descriptions."""
    files = {kind: directory / f"{kind}.jsonl" for kind in ("new", "unchanged", "changed")}
    with files["new"].open("wb") as new, files["changed"].open("wb") as changed:
        for number, record in enumerate(dataset.records(rows)):
            organization_id = str(number % ORGANIZATIONS + 1)
            text = encode(msgspec.structs.replace(record, organization_id=organization_id)) + b"\n"
            new.write(text)
            changed.write(text.replace(b'"description":"', b'"description":"Paid: ', 1))
    files["unchanged"].symlink_to(files["new"])
    return files


def import_files(configuration: Configuration, files: Mapping[str, Path], *, rows: int) -> dict[str, ImportCost]:
    empty(configuration)
    with psycopg.connect(configuration.url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO payments_organization (id, name) SELECT n, 'Shop' FROM generate_series(1, %s) AS n "
            "ON CONFLICT DO NOTHING",
            [ORGANIZATIONS],
        )
    start = manage(configuration.url, "import_payments", "/dev/null")
    return {kind: import_file(configuration, path, rows=rows, start=start) for kind, path in files.items()}


def import_file(configuration: Configuration, path: Path, *, rows: int, start: CommandResult) -> ImportCost:
    before = configuration.cpu()
    result = manage(configuration.url, "import_payments", str(path))
    coordinator, workers = (
        (after - earlier) * 1e6 / rows for after, earlier in zip(configuration.cpu(), before, strict=True)
    )
    return ImportCost(rows / (result.seconds - start.seconds), coordinator, workers)


def small_import_ms(configuration: Configuration) -> float:
    """Return how long an import of one payment takes in a running process: mostly the commit."""
    seconds = []
    with connected_to(configuration.url):
        store([line(id="pt_first")])
        for number in range(SMALL_IMPORTS):
            record = line(id=f"pt_small{number}")
            began = time.perf_counter()
            store([record])
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds) * 1000


# Pages


def measure_pages(configurations: Sequence[Configuration], *, rows: int, rounds: int, seconds: int) -> Iterator[str]:
    keys = {configuration.name: load_pages(configuration, rows=rows) for configuration in configurations}
    positions = find_positions(configurations[0].url, dataset.LARGE.id)
    configurations = [*configurations, *through_workers(configurations[WORKERS.index(2) + 1])]
    with ExitStack() as stack:
        loads = [
            PageLoad(each, stack.enter_context(running(SERVICE, each.url)), keys[each.name.partition(",")[0]], seconds)
            for each in configurations
        ]
        results = []
        for number in range(rounds + 1):
            log(f"Measuring pages: round {number} of {rounds}")
            results.append(
                {
                    (limit, load.configuration.name): load.cost(positions, limit=limit)
                    for limit in LIMITS
                    for load in rotated(loads, number)
                }
            )
    yield "| limit | database | requests/s | p50 of one client, ms | processor, ms: service | coordinator | workers |"
    yield "|---|---|---|---|---|---|---|"
    for limit in LIMITS:
        for configuration in configurations:
            costs = [result[limit, configuration.name] for result in results[1:]]
            yield (
                f"| {limit} | {configuration.name} | {median(costs, 'requests_per_second'):.0f} "
                f"| {median(costs, 'p50_ms'):.2f} | {median(costs, 'service_ms'):.2f} "
                f"| {median(costs, 'coordinator_ms'):.2f} | {median(costs, 'workers_ms'):.2f} |"
            )


def load_pages(configuration: Configuration, *, rows: int) -> str:
    """Replace the payments by those of the large organization and a small one. Return a key of the large one."""
    log(f"Loading payments: {configuration.name}")
    empty(configuration)
    with connected_to(configuration.url):
        store(encode(record) for record in dataset.records(rows))
        key = issue_key(organization=dataset.LARGE.id, mode=dataset.MODE)
    with psycopg.connect(configuration.url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE) payments_payment")
    return key


def through_workers(configuration: Configuration) -> list[Configuration]:
    """Return configurations that read through the worker with the payments of the large organization, and another."""
    own = configuration.cluster.worker_of(dataset.LARGE.id, name=configuration.database)
    other = next(worker for worker in configuration.cluster.workers if worker is not own)
    return [
        replace(configuration, name=f"{configuration.name}, through the worker with the payments", server=own),
        replace(configuration, name=f"{configuration.name}, through another worker", server=other),
    ]


@dataclass(frozen=True)
class PageLoad:
    """A service over a configuration, and how to request its pages."""

    configuration: Configuration
    service: RunningServer
    key: str
    seconds: int

    def cost(self, positions: Positions, *, limit: int) -> PageCost:
        paths = [from_path(limit, start) for start in positions.anywhere]
        load = Load(self.key, self.seconds, self.configuration.cluster.coordinator.processes[0])
        single = run_load(self.service.base_url, paths, server=self.service.process, load=replace(load, connections=1))
        _, before = self.configuration.cpu()
        result = run_load(self.service.base_url, paths, server=self.service.process, load=load)
        _, after = self.configuration.cpu()
        return PageCost(
            requests_per_second=result.requests_per_second,
            p50_ms=single.p50_ms,
            service_ms=result.server_cpu_ms,
            coordinator_ms=result.database_cpu_ms,
            workers_ms=(after - before) * 1000 / (result.requests_per_second * self.seconds),
        )
