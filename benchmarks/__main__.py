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
from typing import TYPE_CHECKING, Any, NamedTuple

from tqdm import tqdm

from benchmarks.database import load_payments, log, migrate, postgresql, set_up_django, sqlite, vacuum
from benchmarks.load import Load
from benchmarks.servers import PEERS, SERVICE, VARIANTS, RunningServer, running

if TYPE_CHECKING:
    from benchmarks.pages import Positions

DESCRIPTION = "Measure the service. Without a command, measure pages, memory, import and export."

ROWS = 1_000_000
QUICK_ROWS = 100_000
ROUNDS = 7
SECONDS = 4
TRANSFER_ROUNDS_MAX = 5

# Modules of the benchmarks that import models can only be imported after `set_up_django`.


def main() -> None:
    options = parse_arguments()
    if options.needs_wrk and shutil.which("wrk") is None:
        sys.exit("wrk is missing. Install it (Debian: apt-get install wrk).")
    options.run(options)


def parse_arguments() -> argparse.Namespace:
    # Options can stand before or after the command, so neither parser has defaults that could replace given values.
    options = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    options.add_argument("--rows", type=int, metavar="N", help=f"number of payments (default: {ROWS})")
    options.add_argument(
        "--quick", action="store_const", dest="rows", const=QUICK_ROWS, help=f"same as --rows {QUICK_ROWS}"
    )
    options.add_argument("--rounds", type=int, metavar="N", help=f"number of measurements (default: {ROUNDS})")
    options.add_argument("--seconds", type=int, metavar="N", help=f"duration of a run of wrk (default: {SECONDS})")
    json_option = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    json_option.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")

    parser = argparse.ArgumentParser(prog="benchmarks/run", description=DESCRIPTION, parents=[options, json_option])
    commands = parser.add_subparsers(title="commands", metavar="[COMMAND]")
    for name, benchmark in BENCHMARKS.items():
        parents = [options, json_option] if benchmark.has_json else [options]
        command = commands.add_parser(name, help=benchmark.help, description=benchmark.help, parents=parents)
        command.set_defaults(run=benchmark.run, needs_wrk=benchmark.needs_wrk)
        if name == "filters":
            command.add_argument("database", choices=("postgresql", "sqlite"), help="the database that is measured")
    defaults = argparse.Namespace(
        run=run_all, needs_wrk=True, rows=ROWS, rounds=ROUNDS, seconds=SECONDS, json=None, database=None
    )
    return parser.parse_args(namespace=defaults)


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
            **measure_memory(database),
            **measure_transfer(options, database.url),  # empties the table
        }
    write_results(results, options)


def run_pages(options: argparse.Namespace) -> None:
    with loaded_database(options) as database:
        results = measure_pages(options, database)
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
        depths = [
            pages.measure_depth(servers[0], database.positions, load=database.load) for _ in range(options.rounds)
        ]
    return {
        **ratios,
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
    for line in pages.table(rounds):
        log(line)
    return pages.ratios(rounds)


def rotated(servers: list[RunningServer], count: int) -> list[RunningServer]:
    """Return the servers with another one first: the caches contain less of what the first one needs."""
    first = count % len(servers)
    return [*servers[first:], *servers[:first]]


def measure_sqlite_depth(options: argparse.Namespace, database: LoadedDatabase) -> list[dict[str, float]]:
    """Measure the time of a page by depth on SQLite. The payments are the same, so the positions are valid there."""
    from benchmarks import dataset, pages  # noqa: PLC0415

    with sqlite() as url:
        key = load_payments(url, dataset.records(options.rows), count=options.rows)
        load = replace(database.load, key=key)
        with running(SERVICE, url) as service:
            return [pages.measure_depth(service, database.positions, load=load) for _ in range(options.rounds)]


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

        count = min(options.rows, QUICK_ROWS)  # the result does not depend on it
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


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)  # the next line may take minutes


class Benchmark(NamedTuple):
    """A command of `benchmarks/run`."""

    run: Callable[[argparse.Namespace], None]
    help: str
    needs_wrk: bool = False
    has_json: bool = False


BENCHMARKS = {
    "pages": Benchmark(
        run_pages, "requests per second compared with the peers, by page size and depth", needs_wrk=True, has_json=True
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
    "replicas": Benchmark(run_replicas, "cost of reading on replicas, and load that they take off", needs_wrk=True),
    "telemetry": Benchmark(run_telemetry, "cost of metrics and traces for a request"),
    "growth": Benchmark(run_growth, "size and speed of the table, whole and in partitions"),
}


if __name__ == "__main__":
    main()
