"""Compares the service of two checkouts: the same payments, in the same rounds.

Each checkout loads a database with its own code. Both databases belong to one PostgreSQL server. The services are
measured one after the other, so the processor time of PostgreSQL meanwhile belongs to one of them.
"""

import os
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.database import LoadedDatabase, load_payments, log, manage, postgresql
from benchmarks.figures import log_table, ratio_figures
from benchmarks.load import Case, LoadResult, cpu_seconds, measure, median, ratios, warm_up
from benchmarks.network import network
from benchmarks.options import Options
from benchmarks.pages import SPEED, Positions, check_not_modified, find_positions, with_etags
from benchmarks.servers import SERVICE, RunningServer, running
from tests.support.processes import ROOT

THIS, OTHER = "this", "other"
NOT_MODIFIED = "not_modified"
CPU_PARTS = ("server_cpu_ms", "database_cpu_ms")
KINDS = ("limit_20", "limit_250", NOT_MODIFIED, "payment", "feed", "filter")
LOAD_KINDS = ("limit_20", "limit_250", NOT_MODIFIED)
CONNECTIONS = (8, 32)
LOCAL, REMOTE = "local", "1"
ETAGS = 1000
FEED = "/v2/payments/changes?limit=20"
FEED_PAGES = 200


@dataclass(frozen=True)
class Side:
    """A checkout, and its database."""

    root: Path
    database: LoadedDatabase


Sides = Mapping[str, Side]  # by name


def compare(options: Options, root: Path) -> dict[str, Any]:
    """Compare start, processor time of a request, and speed. Return the medians, and the ratios with their ranges."""
    roots = {THIS: ROOT, OTHER: root.resolve()}
    with postgresql(*roots) as databases:
        sides = {
            name: Side(roots[name], load_payments(database, options.rows, root=roots[name]))
            for name, database in zip(roots, databases, strict=True)
        }
        positions = find_positions(sides[THIS].database.url)
        return {
            "start": compare_starts(options, sides),
            "cpu": compare_cpu(options, sides, positions),
            "load": compare_load(options, sides, positions),
        }


def compare_starts(options: Options, sides: Sides) -> dict[str, Any]:
    """Compare the processor time of a command, and of the service until it listens, in seconds."""
    log(f"Measuring starts: {options.rounds} rounds")
    figures = {}
    for name, cpu_seconds_of in (("manage.py check", cpu_seconds_of_check), ("scripts/start", cpu_seconds_of_start)):
        seconds: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(options.rounds):
            for side in list(sides)[:: -1 if number % 2 else 1]:
                seconds[side].append(cpu_seconds_of(sides[side]))
        figures[name] = {
            **{f"{side}_seconds": round(statistics.median(values), 3) for side, values in seconds.items()},
            **ratio_figures("ratio", [this / other for this, other in zip(*seconds.values(), strict=True)]),
        }
    log_table([{"start": name, **row} for name, row in figures.items()])
    return figures


def cpu_seconds_of_check(side: Side) -> float:
    before = os.times()
    manage(side.database.url, "check", root=side.root)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def cpu_seconds_of_start(side: Side) -> float:
    with running(SERVICE, side.database, root=side.root) as service:
        return cpu_seconds(service.process)


def compare_cpu(options: Options, sides: Sides, positions: Positions) -> dict[str, Any]:
    """Compare the processor time of a request, of the service and PostgreSQL: one process, thread and connection.

    The speed of two processes with the same code differs by some percent, so each round starts new ones.
    """
    log(f"Measuring processor time: {options.rounds} rounds")
    results: dict[str, dict[str, list[LoadResult]]] = {kind: {name: [] for name in sides} for kind in KINDS}
    for number in range(options.rounds):
        ordered = dict(list(sides.items())[:: -1 if number % 2 else 1])
        once = replace(options, rounds=1)
        measured = measure_sides(once, ordered, positions, kinds=KINDS, connections=(1,), workers=1, threads=1)
        for (kind, _), pair in measured.items():
            for name, loads in pair.items():
                results[kind][name] += loads
    figures = {
        kind: {
            **{f"{name}_{part}": round(median(loads, part), 3) for name, loads in pair.items() for part in CPU_PARTS},
            **ratio_figures("ratio", ratios("cpu_ms", pair[THIS], pair[OTHER]), digits=3),
            "ratio_of_best": round(best_cpu_ms(pair[THIS]) / best_cpu_ms(pair[OTHER]), 3),
        }
        for kind, pair in results.items()
    }
    log_table([{"one process": kind, **row} for kind, row in figures.items()])
    return figures


def best_cpu_ms(results: Sequence[LoadResult]) -> float:
    """Return the processor time of the best round. Other work on the machine only ever adds to it."""
    return min(result.cpu_ms for result in results)


def compare_load(options: Options, sides: Sides, positions: Positions) -> dict[str, Any]:
    """Compare requests per second and p99 over p50, on the local socket and at a round trip of one millisecond."""
    with network(sides[THIS].database) as remote:
        remote.set_round_trip(float(REMOTE))
        far = {name: replace(side, database=remote.database(side.database)) for name, side in sides.items()}
        return {
            place: compare_load_at(place, options, sides_there, positions)
            for place, sides_there in ((LOCAL, sides), (REMOTE, far))
        }


def compare_load_at(place: str, options: Options, sides: Sides, positions: Positions) -> dict[str, Any]:
    log(f"Measuring load, round trip {place}: {options.rounds} rounds")
    results = measure_sides(options, sides, positions, kinds=LOAD_KINDS, connections=CONNECTIONS)
    figures: dict[str, dict[str, Any]] = {f"connections_{connections}": {} for connections in CONNECTIONS}
    for (kind, connections), pair in results.items():
        figures[f"connections_{connections}"][kind] = {
            **{f"{name}_{SPEED}": round(median(loads, SPEED)) for name, loads in pair.items()},
            **ratio_figures("ratio", ratios(SPEED, pair[THIS], pair[OTHER])),
            **{f"{name}_tail": round(median(loads, "tail"), 2) for name, loads in pair.items()},
        }
    rows = [(connections, kind, row) for connections, kinds in figures.items() for kind, row in kinds.items()]
    log_table(
        [{"round trip": place, "connections": connections, "page": kind, **row} for connections, kind, row in rows]
    )
    return figures


def measure_sides(
    options: Options,
    sides: Sides,
    positions: Positions,
    *,
    kinds: Sequence[str],
    connections: Sequence[int],
    **workers: int,
) -> dict[tuple[str, int], dict[str, list[LoadResult]]]:
    """Return the results by kind and number of connections, and by side. The two sides follow each other."""
    with ExitStack() as stack:
        services = {
            name: stack.enter_context(running(SERVICE, side.database, root=side.root, **workers))
            for name, side in sides.items()
        }
        paths = {name: paths_by_kind(service, positions) for name, service in services.items()}
        cases = {
            (kind, number, name): Case(service, paths[name][kind], number)
            for kind in kinds
            for number in connections
            for name, service in services.items()
        }
        warm_up(cases, seconds=options.seconds)
        results = measure(cases, seconds=options.seconds, rounds=options.rounds)
    check_not_modified(load for (kind, *_), loads in results.items() if kind == NOT_MODIFIED for load in loads)
    return {
        (kind, number): {name: results[kind, number, name] for name in sides}
        for kind in kinds
        for number in connections
    }


def paths_by_kind(service: RunningServer, positions: Positions) -> dict[str, list[str]]:
    """Return the paths of each kind of request, with the ETags and the feed's tokens of this service."""
    paths = positions.paths(service, 20)
    with service.client() as client:
        feed = [page["_links"]["self"]["href"] for page in islice(client.walk("next", FEED), FEED_PAGES)]
    return {
        "limit_20": paths,
        "limit_250": positions.paths(service, 250),
        NOT_MODIFIED: with_etags(service, paths[:ETAGS]),
        "payment": [f"/v2/payments/{start.payment_id}" for start in positions.anywhere],
        "feed": [href.removeprefix(service.base_url) for href in feed],
        "filter": [f"{path}&status=failed" for path in paths],
    }
