"""`benchmarks/run`: the whole, one after the other."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django
from tqdm import tqdm

from benchmarks.database import postgresql
from benchmarks.load import Load
from benchmarks.servers import PEERS, SERVICE, SETTINGS, Running, running

if TYPE_CHECKING:
    from tests.support.service import Service

ROWS = 1_000_000
QUICK_ROWS = 100_000
TRANSFER_ROUNDS_MAX = 5


def main() -> None:
    options = arguments()
    if options.filters:
        print_filters(options)
        return
    if options.indexes:
        print_indexes(options)
        return
    if options.admin:
        print_admin(options)
        return
    if options.observing:
        print_observing(options)
        return
    if options.growth:
        print_growth(options)
        return
    if shutil.which("wrk") is None:
        sys.exit("wrk is needed, the load generator (Debian: apt-get install wrk).")
    if options.replicas:
        print_replicas(options)
        return
    with postgresql() as (database_url, database):
        set_up(database_url)
        results = measure(options, database_url, database)
    print(json.dumps(results, indent=2))
    if options.json:
        options.json.write_text(json.dumps(results) + "\n")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="how many payments (default: %(default)s)")
    parser.add_argument(
        "--quick", action="store_const", dest="rows", const=QUICK_ROWS, help=f"the same as --rows {QUICK_ROWS}"
    )
    parser.add_argument(
        "--settings", action="store_true", help="beside other settings of its own, in place of the peers"
    )
    parser.add_argument(
        "--filters",
        choices=("postgresql", "sqlite"),
        help="what pages of some of the payments cost, in place of all else",
    )
    parser.add_argument("--indexes", action="store_true", help="what indexes cost an import, in place of all else")
    parser.add_argument("--admin", action="store_true", help="how long the admin's pages take, in place of all else")
    parser.add_argument(
        "--replicas", action="store_true", help="what reading on replicas costs, and spares, in place of all else"
    )
    parser.add_argument(
        "--observing", action="store_true", help="what metrics and traces cost a request, in place of all else"
    )
    parser.add_argument(
        "--growth", action="store_true", help="what the table takes, whole and in partitions, in place of all else"
    )
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=4, help="for how long each time (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the ratios are written, too")
    return parser.parse_args()


def measure(options: argparse.Namespace, database_url: str, database: Any) -> dict[str, Any]:
    from benchmarks import dataset, memory, pages, transfer  # noqa: PLC0415  once Django is set up

    key = fill(database_url, dataset.records(options.rows), count=options.rows)
    vacuum()
    places = pages.find_places(database_url, dataset.LARGE.id)
    with ExitStack() as stack:
        others = SETTINGS if options.settings else PEERS
        servers = [stack.enter_context(running(server, database_url)) for server in (SERVICE, *others)]
        if not options.settings:
            pages.compare_answers(servers, places, key=key)
        load = Load(key, options.seconds, database)
        say(f"Measuring: {options.rounds} rounds")
        rounds = [
            pages.measure_pages(rotated(servers, number), places, load=load)
            for number in tqdm(range(options.rounds), disable=None)
        ]
        for line in pages.table(rounds):
            say(line)
        if options.settings:
            return pages.ratios(rounds)
        depths = [pages.measure_depth(servers[0], places, load=load) for _ in range(options.rounds)]
    sqlite_depths = measure_sqlite(options, places, load=load)
    say(f"Asking for {memory.REQUESTS} pages")
    held = memory.measure_memory(database_url, places, load=load)
    buffers = pages.buffers(places, organization_id=dataset.LARGE.id)
    say("Importing and exporting")
    with tempfile.TemporaryDirectory(prefix="payments-transfer-") as directory:
        moved = transfer.measure_transfer(
            database_url, Path(directory), count=options.rows, rounds=min(options.rounds, TRANSFER_ROUNDS_MAX)
        )
    return {
        **pages.ratios(rounds),
        "depth": pages.depth_ratios(depths),
        "sqlite_depth": pages.depth_ratios(sqlite_depths),
        **moved,
        "memory_mb": held,
        "buffers": buffers,
    }


def rotated(servers: list[Running], count: int) -> list[Running]:
    """Return the servers with another one first: who comes first finds what it needs farther away."""
    first = count % len(servers)
    return [*servers[first:], *servers[:first]]


def measure_sqlite(options: argparse.Namespace, places: Any, *, load: Load) -> list[dict[str, float]]:
    """Measure how a page's time depends on its depth on SQLite: the same payments, so the same places."""
    from benchmarks import dataset, pages  # noqa: PLC0415

    with sqlite() as url:
        key = fill(url, dataset.records(options.rows), count=options.rows)
        with running(SERVICE, url) as service:
            return [pages.measure_depth(service, places, load=replace(load, key=key)) for _ in range(options.rounds)]


def print_filters(options: argparse.Namespace) -> None:
    """Print what is found as a table for docs/performance.md, line by line."""
    with ExitStack() as stack:
        on_sqlite = options.filters == "sqlite"
        url = stack.enter_context(sqlite()) if on_sqlite else stack.enter_context(postgresql())[0]
        set_up(url)
        from benchmarks import filters  # noqa: PLC0415

        fill(url, filters.records(options.rows), count=options.rows)
        if not on_sqlite:
            vacuum()
        print_lines(filters.measure_filters())


def print_indexes(options: argparse.Namespace) -> None:
    """Print the same of what each index costs."""
    with postgresql() as (url, _):
        set_up(url)
        from benchmarks import dataset, indexes  # noqa: PLC0415

        fill(url, dataset.records(options.rows), count=options.rows)
        print_lines(indexes.measure_indexes(url, rounds=options.rounds))


def print_admin(options: argparse.Namespace) -> None:
    """Print the same of what staff wait for."""
    with postgresql() as (url, _):
        set_up(url)
        from benchmarks import admin  # noqa: PLC0415

        fill(url, admin.records(options.rows), count=options.rows)
        vacuum()
        print_lines(admin.measure_admin(url, rounds=options.rounds))


def print_replicas(options: argparse.Namespace) -> None:
    """Print the same of what reading on replicas costs, and what it takes off the primary."""
    from tests.support.postgresql import cluster  # noqa: PLC0415

    with cluster() as servers:
        servers.primary.execute("CREATE DATABASE payments")
        url = servers.address(servers.primary, name="payments")
        set_up(url)
        from benchmarks import dataset, pages, replicas, routing  # noqa: PLC0415

        key = fill(url, dataset.records(options.rows), count=options.rows)
        vacuum()
        servers.wait_until_replayed()
        places = pages.find_places(url, dataset.LARGE.id)
        load = Load(key, options.seconds, servers.primary.processes[0])
        print_lines(replicas.measure_replicas(servers, places, load=load, rounds=options.rounds))
        print_lines(routing.measure_routing(places, key=key, rounds=options.rounds))


def print_observing(options: argparse.Namespace) -> None:
    """Print the same for docs/observing.md; how many payments there are does not matter to it."""
    with postgresql() as (url, _):
        set_up(url)
        from benchmarks import dataset, observing  # noqa: PLC0415

        count = min(options.rows, QUICK_ROWS)
        key = fill(url, dataset.records(count), count=count)
        vacuum()
        print_lines(observing.measure_observing(key, rounds=options.rounds))


def print_growth(options: argparse.Namespace) -> None:
    """Print the same of how the table grows, question by question."""
    with postgresql() as (url, _):
        set_up(url)
        from benchmarks.growth import dataset, report  # noqa: PLC0415

        fill(url, dataset.records(options.rows), count=options.rows)
        vacuum()
        print_lines(report.measure_growth(count=options.rows, rounds=options.rounds))


def print_lines(lines: Iterable[str]) -> None:
    """Print a table as it comes: some lines take minutes."""
    for line in lines:
        print(line, flush=True)


def set_up(database_url: str) -> None:
    """Have the ORM of this process read that database."""
    os.environ.update(DATABASE_URL=database_url, DJANGO_SETTINGS_MODULE="payments_site.settings")
    django.setup()


@contextmanager
def sqlite() -> Iterator[str]:
    """Give the address of a file that is to be made; forget it afterwards."""
    with tempfile.TemporaryDirectory(prefix="payments-sqlite-") as directory:
        yield f"sqlite:///{directory}/payments.sqlite3"


def fill(database_url: str, records: Iterable[Any], *, count: int) -> str:
    """Load payments into an empty database, and return a key to most of them."""
    from benchmarks import dataset, pages  # noqa: PLC0415
    from payments.record import encode  # noqa: PLC0415
    from tests.support.service import Service  # noqa: PLC0415

    say(f"Loading {database_url.partition(':')[0]}")
    service = Service(database_url)
    service.migrate()
    lines = (encode(record) + b"\n" for record in records)
    import_lines(service, tqdm(lines, total=count, unit=" payments", disable=None))
    keys = [service.create_api_key(organization=shop.id, mode=pages.MODE) for shop in (dataset.SMALL, dataset.LARGE)]
    return keys[-1]


def import_lines(service: "Service", lines: Iterable[bytes]) -> None:
    """Import the payments as they are made: no file of their size is needed."""
    command = ("import_payments", "--create-organizations", "-")
    importing = service.popen(*command, stdin=subprocess.PIPE, stdout=None, stderr=None)
    assert importing.stdin is not None
    importing.stdin.writelines(lines)
    importing.stdin.close()
    if importing.wait():
        sys.exit("The import failed.")


def vacuum() -> None:
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
