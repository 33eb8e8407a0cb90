"""The command line of the benchmarks."""

import argparse
import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
django.setup()

from benchmarks.compare import compare  # noqa: E402
from benchmarks.database import LoadedDatabase, load_payments, postgresql, sqlite  # noqa: E402
from benchmarks.imports import measure_imports  # noqa: E402
from benchmarks.memory import measure_memory  # noqa: E402
from benchmarks.options import QUICK, Options  # noqa: E402
from benchmarks.pages import measure_pages  # noqa: E402
from benchmarks.responses import measure_admin, measure_filters  # noqa: E402
from benchmarks.round_trips import measure_round_trips  # noqa: E402
from benchmarks.sizes import measure_sizes  # noqa: E402
from benchmarks.transfer import measure_transfer  # noqa: E402

# The last one empties the table.
COMMANDS: Mapping[str, Callable[[Options, LoadedDatabase], dict[str, Any]]] = {
    "pages": measure_pages,
    "round-trip": measure_round_trips,
    "memory": measure_memory,
    "filters": measure_filters,
    "admin": measure_admin,
    "sizes": measure_sizes,
    "imports": measure_imports,
    "transfer": measure_transfer,
}
DEFAULT = ("pages", "round-trip", "memory", "transfer")
ON_SQLITE = {"filters", "admin"}
WITHOUT_WRK = {"filters", "admin", "sizes", "imports", "transfer"}
USAGE = """
benchmarks/run [OPTION...] [COMMAND...]
       benchmarks/run [OPTION...] compare PATH
"""
DESCRIPTION = f"""
Measure the service. The commands share one database: {", ".join(COMMANDS)} (default: {" ".join(DEFAULT)}).
`compare PATH` compares this checkout with another one, which has its own .venv. benchmarks/README.md explains both.
"""


def main() -> None:
    parser = argparse.ArgumentParser(usage=USAGE.strip(), description=DESCRIPTION)
    add_arguments(parser)
    arguments = parser.parse_args()
    commands, options = arguments.commands or DEFAULT, parse_options(arguments)
    if not WITHOUT_WRK.issuperset(commands) and shutil.which("wrk") is None:
        parser.error("wrk is missing. Install it (Debian: apt-get install wrk).")
    match commands:
        case ["compare", path] if (Path(path) / "scripts/start").exists():
            results = compare(options, Path(path))
        case ["compare", *_]:
            parser.error("compare needs the path of another checkout.")
        case _ if unknown := set(commands).difference(ON_SQLITE if arguments.sqlite else COMMANDS):
            parser.error(f"unknown command: {', '.join(sorted(unknown))}")
        case _:
            results = run(commands, options, is_sqlite=arguments.sqlite)
    print(json.dumps(results, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(results) + "\n")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("commands", nargs="*", metavar="COMMAND")
    parser.add_argument("--rows", type=int, metavar="N", help="number of payments")
    parser.add_argument("--rounds", type=int, metavar="N", help="number of measurements")
    parser.add_argument("--seconds", type=float, metavar="S", help="duration of a measurement under load")
    parser.add_argument(
        "--round-trip",
        type=milliseconds,
        dest="round_trips_ms",
        metavar="MS,...",
        help="round trips to the database in milliseconds, besides the local socket and 0",
    )
    parser.add_argument("--requests", type=int, metavar="N", help="number of requests before memory is measured again")
    parser.add_argument("--drop-index", metavar="NAME", help="measure transfer also without this index")
    parser.add_argument("--no-install", action="store_false", dest="install", help="measure memory with all packages")
    parser.add_argument("--quick", action="store_true", help="use smaller defaults")
    parser.add_argument("--sqlite", action="store_true", help="measure filters or admin on SQLite")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")


def milliseconds(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split(",")))


def parse_options(arguments: argparse.Namespace) -> Options:
    names = ("rows", "rounds", "seconds", "round_trips_ms", "requests", "drop_index", "install")
    changes = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    return replace(QUICK if arguments.quick else Options(), **changes)


def run(commands: Collection[str], options: Options, *, is_sqlite: bool) -> dict[str, Any]:
    """Run commands on the same database, in the order of `COMMANDS`."""
    results: dict[str, Any] = {}
    with sqlite() if is_sqlite else postgresql("payments") as databases:
        loaded = load_payments(databases[0], options.rows)
        for name, measure in COMMANDS.items():
            results |= measure(options, loaded) if name in commands else {}
    return results


if __name__ == "__main__":
    main()
