"""The service with other numbers of threads per worker: speed by round trip, memory, and connections to PostgreSQL."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from tqdm import tqdm

from benchmarks.deployments import Configuration, Deployments, deployed
from benchmarks.figures import LOAD_HEADER, Loads, load_columns, load_figures
from benchmarks.load import Load
from benchmarks.memory import largest_worker_mb
from benchmarks.pages import Positions
from benchmarks.round_trips import CONNECTIONS, measure_loads, page_paths, warm_up
from benchmarks.servers import SERVICE, rotated

THREADS = (1, 2, 4, 6, 8)
CONFIGURATIONS = tuple(
    Configuration(replace(SERVICE, name=str(threads)), {"WEB_THREADS": str(threads)}) for threads in THREADS
)

Round = dict[str, dict[int, Loads]]  # by round trip and number of connections; the servers are numbers of threads


@dataclass(frozen=True)
class ThreadCosts:
    """Memory and connections of the service with a number of threads, after the load."""

    memory_mb: int  # of the largest worker
    database_connections: int  # of all workers


@dataclass(frozen=True)
class ThreadMeasurements:
    """The speed in several rounds, and the costs."""

    rounds: list[Round]
    costs: dict[str, ThreadCosts]  # by number of threads


def measure_threads(
    database_url: str, positions: Positions, *, names: Sequence[str], load: Load, rounds: int
) -> ThreadMeasurements:
    """Measure the service with all numbers of threads at these round trips."""
    paths = page_paths(positions)
    with deployed(CONFIGURATIONS, database_url) as deployments:
        warm_up(deployments, paths, load=load)
        measured = [
            {
                name: measure_loads(rotated(deployments.at(name).servers, number), paths, load=load)
                for name in rotated(names, number)
            }
            for number in tqdm(range(rounds), disable=None)
        ]
        return ThreadMeasurements(measured, costs(deployments, database_url))


def costs(deployments: Deployments, database_url: str) -> dict[str, ThreadCosts]:
    return {
        running.server.name: ThreadCosts(
            largest_worker_mb(running), count_connections(database_url, running.server.name)
        )
        for running in deployments.remote.servers
    }


def count_connections(database_url: str, application_name: str) -> int:
    """Return how many connections PostgreSQL lists under a name."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE application_name = %s", [application_name]
        ).fetchall()
    return len(rows)


def results(measurements: ThreadMeasurements) -> dict[str, Any]:
    """Return the medians of the rounds."""
    return {
        "threads": {
            threads: {
                "memory_mb": costs.memory_mb,
                "database_connections": costs.database_connections,
                "round_trip": round_trip_figures(threads, measurements.rounds),
            }
            for threads, costs in measurements.costs.items()
        }
    }


def round_trip_figures(threads: str, rounds: Sequence[Round]) -> dict[str, Any]:
    return {
        name: {
            f"connections_{connections}": load_figures([at[name][connections][threads] for at in rounds])
            for connections in CONNECTIONS
        }
        for name in rounds[0]
    }


def table(measurements: ThreadMeasurements) -> Iterator[str]:
    """Yield the lines of a table with the medians of the rounds."""
    rounds = measurements.rounds
    yield f"round trip connections threads {LOAD_HEADER}"
    for name in rounds[0]:
        for connections in CONNECTIONS:
            for threads in measurements.costs:
                columns = load_columns([at[name][connections][threads] for at in rounds])
                yield f"{name:>10} {connections:>11} {threads:>7} {columns}"
    yield "threads  MB per worker  connections to PostgreSQL"
    for threads, cost in measurements.costs.items():
        yield f"{threads:>7} {cost.memory_mb:>14} {cost.database_connections:>26}"
