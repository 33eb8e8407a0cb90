"""The command line of the benchmarks."""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tqdm import tqdm

from benchmarks.database import load_payments, log, migrate, postgresql, set_up_django, sqlite, vacuum
from benchmarks.load import Load
from benchmarks.options import QUICK_SIZES, json_option, round_trip_option, shortened, size_options, with_defaults
from benchmarks.servers import PEERS, SERVICE, VARIANTS, RunningServer, rotated, running

if TYPE_CHECKING:
    from benchmarks.pages import Positions

DESCRIPTION = "Measure the service. Without a command, measure pages, round trips, memory, import and export."

TRANSFER_ROUNDS_MAX = 5

Result = TypeVar("Result")

# Modules of the benchmarks that import models can only be imported after `set_up_django`.


def main() -> None:
    options = parse_arguments()
    if options.needs_wrk and shutil.which("wrk") is None:
        sys.exit("wrk is missing. Install it (Debian: apt-get install wrk).")
    options.run(options)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/run", description=DESCRIPTION, parents=[size_options(), round_trip_option(), json_option()]
    )
    commands = parser.add_subparsers(title="commands", metavar="[COMMAND]")
    for name, benchmark in BENCHMARKS.items():
        parents = [size_options()]
        if benchmark.has_round_trip:
            parents.append(round_trip_option())
        if benchmark.has_json:
            parents.append(json_option())
        command = commands.add_parser(name, help=benchmark.help, description=benchmark.help, parents=parents)
        command.set_defaults(run=benchmark.run, needs_wrk=benchmark.needs_wrk)
        if name in {"filters", "search"}:
            command.add_argument("database", choices=("postgresql", "sqlite"), help="the database that is measured")
    defaults = argparse.Namespace(run=run_all, needs_wrk=True, quick=False, json=None, database=None)
    return with_defaults(parser.parse_args(namespace=defaults))


@dataclass(frozen=True)
class LoadedDatabase:
    """A PostgreSQL database with payments, an API key for most of them, and positions in their list."""

    url: str
    key: str
    positions: "Positions"
    load: Load


@contextmanager
def loaded_database(options: argparse.Namespace) -> Iterator[LoadedDatabase]:
    with postgresql() as (url, process):
        set_up_django(url)
        from benchmarks import dataset, pages  # noqa: PLC0415

        key = load_payments(url, dataset.records(options.rows), count=options.rows)
        vacuum()
        positions = pages.find_positions(url, dataset.LARGE.id)
        yield LoadedDatabase(url, key, positions, Load(key, options.seconds, process))


def run_all(options: argparse.Namespace) -> None:
    with loaded_database(options) as database:
        results = {
            **measure_pages(options, database),
            **measure_round_trips(shortened(options), database),
            **measure_memory(database),
            **measure_transfer(options, database.url),  # empties the table
        }
    write_results(results, options)


def run_pages(options: argparse.Namespace) -> None:
    with loaded_database(options) as database:
        results = measure_pages(options, database)
    write_results(results, options)


def run_round_trips(options: argparse.Namespace) -> None:
    with loaded_database(options) as database:
        results = measure_round_trips(options, database)
    write_results(results, options)


def run_threads(options: argparse.Namespace) -> None:
    with loaded_database(options) as database:
        results = measure_threads(options, database)
    write_results(results, options)


def run_memory(options: argparse.Namespace) -> None:
    with loaded_database(options) as database:
        results = measure_memory(database)
    write_results(results, options)


def run_transfer(options: argparse.Namespace) -> None:
    with postgresql() as (url, _):
        set_up_django(url)
        migrate(url)
        results = measure_transfer(options, url)
    write_results(results, options)


def run_settings(options: argparse.Namespace) -> None:
    with loaded_database(options) as database, ExitStack() as stack:
        servers = [stack.enter_context(running(server, database.url)) for server in (SERVICE, *VARIANTS)]
        results = compare_servers(options, servers, database)
    write_results(results, options)


def measure_pages(options: argparse.Namespace, database: LoadedDatabase) -> dict[str, Any]:
    from benchmarks import dataset, pages  # noqa: PLC0415

    with ExitStack() as stack:
        servers = [stack.enter_context(running(server, database.url)) for server in (SERVICE, *PEERS)]
        pages.compare_responses(servers, database.positions, key=database.key)
        ratios = compare_servers(options, servers, database)
        not_modified = measure_not_modified(shortened(options), servers, database)
        depths = [
            pages.measure_depth(servers[0], database.positions, load=database.load) for _ in range(options.rounds)
        ]
    return {
        **ratios,
        "not_modified": not_modified,
        "depth": pages.depth_ratios(depths),
        "sqlite_depth": pages.depth_ratios(measure_sqlite_depth(options, database)),
        "buffers": pages.buffers(database.positions, organization_id=dataset.LARGE.id),
    }


def compare_servers(
    options: argparse.Namespace, servers: list[RunningServer], database: LoadedDatabase
) -> dict[str, Any]:
    """Measure requests per second of the servers. The first one is the service, with which the others are compared."""
    from benchmarks import pages  # noqa: PLC0415

    log(f"Measuring pages: {options.rounds} rounds")
    rounds = [
        pages.measure_pages(rotated(servers, number), database.positions, load=database.load)
        for number in tqdm(range(options.rounds), disable=None)
    ]
    log_lines(pages.table(rounds))
    return pages.ratios(rounds)


def measure_not_modified(
    options: argparse.Namespace, servers: list[RunningServer], database: LoadedDatabase
) -> dict[str, float]:
    from benchmarks import not_modified  # noqa: PLC0415

    log(f"Measuring pages that are not modified: {options.rounds} rounds")
    load = replace(database.load, seconds=options.seconds)
    rounds = not_modified.measure_not_modified(servers, database.positions, load=load, rounds=options.rounds)
    log_lines(not_modified.table(rounds))
    return not_modified.ratios(rounds)


def measure_sqlite_depth(options: argparse.Namespace, database: LoadedDatabase) -> list[dict[str, float]]:
    """Measure the time of a page by depth on SQLite. The payments are the same, so the positions are valid there."""
    from benchmarks import dataset, pages  # noqa: PLC0415

    with sqlite() as url:
        key = load_payments(url, dataset.records(options.rows), count=options.rows)
        load = replace(database.load, key=key)
        with running(SERVICE, url) as service:
            return [pages.measure_depth(service, database.positions, load=load) for _ in range(options.rounds)]


def measure_at_round_trips(
    measure: Callable[..., Result], options: argparse.Namespace, database: LoadedDatabase
) -> Result:
    """Call `measure`, which measures servers at the round trips of the options."""
    from benchmarks import round_trips  # noqa: PLC0415

    return measure(
        database.url,
        database.positions,
        names=round_trips.round_trip_names(options.delays_ms),
        load=replace(database.load, seconds=options.seconds),
        rounds=options.rounds,
    )


def measure_round_trips(options: argparse.Namespace, database: LoadedDatabase) -> dict[str, Any]:
    from benchmarks import round_trips  # noqa: PLC0415

    log(f"Measuring round trips: {options.rounds} rounds")
    rounds = measure_at_round_trips(round_trips.measure_round_trips, options, database)
    log_lines(round_trips.table(rounds))
    return round_trips.results(rounds)


def measure_threads(options: argparse.Namespace, database: LoadedDatabase) -> dict[str, Any]:
    from benchmarks import threads  # noqa: PLC0415

    log(f"Measuring threads: {options.rounds} rounds")
    measurements = measure_at_round_trips(threads.measure_threads, options, database)
    log_lines(threads.table(measurements))
    return threads.results(measurements)


def measure_memory(database: LoadedDatabase) -> dict[str, Any]:
    from benchmarks import memory  # noqa: PLC0415

    log(f"Measuring memory: {memory.REQUESTS} requests")
    return {"memory_mb": memory.measure_memory(database.url, database.positions, load=database.load)}


def measure_transfer(options: argparse.Namespace, url: str) -> dict[str, Any]:
    from benchmarks import transfer  # noqa: PLC0415

    log("Measuring import and export")
    rounds = min(options.rounds, TRANSFER_ROUNDS_MAX)
    with tempfile.TemporaryDirectory(prefix="payments-transfer-") as directory:
        return transfer.measure_transfer(url, Path(directory), count=options.rows, rounds=rounds)


def log_lines(lines: Iterable[str]) -> None:
    for line in lines:
        log(line)


def write_results(results: dict[str, Any], options: argparse.Namespace) -> None:
    print(json.dumps(results, indent=2))
    if options.json:
        options.json.write_text(json.dumps(results) + "\n")


# The following benchmarks print tables for the documents, line by line.


def run_filters(options: argparse.Namespace) -> None:
    with ExitStack() as stack:
        is_sqlite = options.database == "sqlite"
        url = stack.enter_context(sqlite()) if is_sqlite else stack.enter_context(postgresql())[0]
        set_up_django(url)
        from benchmarks import filters  # noqa: PLC0415

        load_payments(url, filters.records(options.rows), count=options.rows)
        if not is_sqlite:
            vacuum()
        print_lines(filters.measure_filters())


def run_indexes(options: argparse.Namespace) -> None:
    with postgresql() as (url, _):
        set_up_django(url)
        from benchmarks import dataset, indexes  # noqa: PLC0415

        load_payments(url, dataset.records(options.rows), count=options.rows)
        print_lines(indexes.measure_indexes(url, rounds=options.rounds))


def run_card_numbers(options: argparse.Namespace) -> None:
    with sqlite() as url:
        set_up_django(url)
        from benchmarks import card_numbers  # noqa: PLC0415

        print_lines(card_numbers.measure_card_numbers(count=options.rows))


def run_admin(options: argparse.Namespace) -> None:
    with postgresql() as (url, _):
        set_up_django(url)
        from benchmarks import admin  # noqa: PLC0415

        load_payments(url, admin.records(options.rows), count=options.rows)
        vacuum()
        print_lines(admin.measure_admin(url, rounds=options.rounds))


def run_search(options: argparse.Namespace) -> None:
    with ExitStack() as stack:
        is_sqlite = options.database == "sqlite"
        url = stack.enter_context(sqlite()) if is_sqlite else stack.enter_context(postgresql())[0]
        set_up_django(url)
        from benchmarks import search  # noqa: PLC0415

        load_payments(url, search.records(options.rows), count=options.rows)
        if not is_sqlite:
            vacuum()
        print_lines(search.measure_search(url, rows=options.rows))


def run_replicas(options: argparse.Namespace) -> None:
    from tests.support.postgresql import cluster  # noqa: PLC0415

    with cluster() as servers:
        servers.primary.execute("CREATE DATABASE payments")
        url = servers.address(servers.primary, name="payments")
        set_up_django(url)
        from benchmarks import dataset, pages, replicas, routing  # noqa: PLC0415

        key = load_payments(url, dataset.records(options.rows), count=options.rows)
        vacuum()
        servers.wait_until_replayed()
        positions = pages.find_positions(url, dataset.LARGE.id)
        load = Load(key, options.seconds, servers.primary.processes[0])
        print_lines(replicas.measure_replicas(servers, positions, load=load, rounds=options.rounds))
        print_lines(routing.measure_routing(positions, key=key, rounds=options.rounds))


def run_telemetry(options: argparse.Namespace) -> None:
    with postgresql() as (url, _):
        set_up_django(url)
        from benchmarks import dataset, telemetry  # noqa: PLC0415

        count = min(options.rows, QUICK_SIZES["rows"])  # the result does not depend on it
        key = load_payments(url, dataset.records(count), count=count)
        vacuum()
        print_lines(telemetry.measure_telemetry(key, rounds=options.rounds))


def run_growth(options: argparse.Namespace) -> None:
    with postgresql() as (url, _):
        set_up_django(url)
        from benchmarks.growth import dataset, report  # noqa: PLC0415

        load_payments(url, dataset.records(options.rows), count=options.rows)
        vacuum()
        print_lines(report.measure_growth(count=options.rows, rounds=options.rounds))


def run_changes(options: argparse.Namespace) -> None:
    with postgresql() as (url, _):
        set_up_django(url)
        from benchmarks import dataset  # noqa: PLC0415
        from benchmarks.changes import report  # noqa: PLC0415

        key = load_payments(url, dataset.records(options.rows), count=options.rows)
        vacuum()
        print_lines(report.measure_changes(url, key, rows=options.rows))


def run_citus(options: argparse.Namespace) -> None:
    set_up_django("postgresql:///payments")  # each measurement connects to its own database
    from benchmarks import citus  # noqa: PLC0415

    print_lines(citus.measure_citus(rows=options.rows, rounds=options.rounds, seconds=options.seconds))


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)  # the next line may take minutes


class Benchmark(NamedTuple):
    """A command of `benchmarks/run`."""

    run: Callable[[argparse.Namespace], None]
    help: str
    needs_wrk: bool = False
    has_json: bool = False
    has_round_trip: bool = False


BENCHMARKS = {
    "pages": Benchmark(
        run_pages, "requests per second compared with the peers, by page size and depth", needs_wrk=True, has_json=True
    ),
    "round-trip": Benchmark(
        run_round_trips,
        "requests per second compared with the peers, by round trip to the database",
        needs_wrk=True,
        has_json=True,
        has_round_trip=True,
    ),
    "threads": Benchmark(
        run_threads,
        "the service with other numbers of threads, by round trip to the database",
        needs_wrk=True,
        has_json=True,
        has_round_trip=True,
    ),
    "memory": Benchmark(
        run_memory, "memory of a worker, before and after many requests", needs_wrk=True, has_json=True
    ),
    "transfer": Benchmark(run_transfer, "import and export compared with COPY", has_json=True),
    "settings": Benchmark(
        run_settings, "the service with other workers, threads and settings", needs_wrk=True, has_json=True
    ),
    "filters": Benchmark(run_filters, "cost of filtered pages"),
    "indexes": Benchmark(run_indexes, "cost of indexes for an import"),
    "card-numbers": Benchmark(run_card_numbers, "numbers that an import takes for card numbers"),
    "admin": Benchmark(run_admin, "response times of the admin"),
    "search": Benchmark(run_search, "response times of searches in the admin"),
    "replicas": Benchmark(run_replicas, "cost of reading on replicas, and load that they take off", needs_wrk=True),
    "telemetry": Benchmark(run_telemetry, "cost of metrics and traces for a request"),
    "citus": Benchmark(
        run_citus, "cost of pages and imports on Citus clusters (CITUS_BUILD builds it)", needs_wrk=True
    ),
    "changes": Benchmark(run_changes, "speed, plans, size and growth of the change feed"),
    "growth": Benchmark(run_growth, "size and speed of the table, whole and in partitions"),
}


if __name__ == "__main__":
    main()
