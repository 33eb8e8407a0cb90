"""Options of the command line, and their defaults."""

import argparse
from math import inf
from pathlib import Path

SIZES = {"rows": 1_000_000, "rounds": 7, "seconds": 4}
QUICK_SIZES = {"rows": 100_000, "rounds": 4, "seconds": 2}
DELAYS_MS = (0.5, 1.0, 2.0)

# Some benchmarks are shortened if they are only a part of a run.
SHORT_ROUNDS_MAX = 3
SHORT_SECONDS_MAX = 2


def shared_parser() -> argparse.ArgumentParser:
    """Return a parser whose options can stand before or after the command.

    So it has no defaults: those of a command would replace values before it.
    """
    return argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)


def size_options() -> argparse.ArgumentParser:
    parser = shared_parser()
    for name, text in (
        ("rows", "number of payments"),
        ("rounds", "number of measurements"),
        ("seconds", "duration of a run of wrk"),
    ):
        parser.add_argument(f"--{name}", type=int, metavar="N", help=f"{text} (default: {SIZES[name]})")
    quick = " ".join(f"--{name} {value}" for name, value in QUICK_SIZES.items())
    parser.add_argument("--quick", action="store_const", const=True, help=f"other defaults: {quick}")
    return parser


def round_trip_option() -> argparse.ArgumentParser:
    parser = shared_parser()
    parser.add_argument(
        "--round-trip",
        type=milliseconds,
        action="extend",
        dest="delays_ms",
        metavar="MS",
        help="round trips to the database in milliseconds, besides the local socket and 0 (default: "
        f"{','.join(f'{delay:g}' for delay in DELAYS_MS)})",
    )
    return parser


def json_option() -> argparse.ArgumentParser:
    parser = shared_parser()
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    return parser


def milliseconds(text: str) -> list[float]:
    """Parse numbers separated by commas.

    :raises ValueError: if a number is invalid or negative
    """
    values = [float(part) for part in text.split(",")]
    if not all(0 <= value < inf for value in values):
        raise ValueError(text)
    return values


def with_defaults(options: argparse.Namespace) -> argparse.Namespace:
    """Return the options, and the defaults of those that are missing."""
    sizes = QUICK_SIZES if options.quick else SIZES
    return argparse.Namespace(**{"delays_ms": DELAYS_MS, **sizes, **vars(options)})


def shortened(options: argparse.Namespace) -> argparse.Namespace:
    """Return the options with half as many rounds, and shorter ones."""
    rounds = min(max(options.rounds // 2, 1), SHORT_ROUNDS_MAX)
    seconds = min(options.seconds, SHORT_SECONDS_MAX)
    return argparse.Namespace(**{**vars(options), "rounds": rounds, "seconds": seconds})
