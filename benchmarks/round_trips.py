"""Requests per second by the round trip to the database, as when the database is on another machine.

All round trips but `LOCAL` lead through the same proxy, which has a cost of its own. So `NO_DELAY` is their base.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tqdm import tqdm

from benchmarks.deployments import LOCAL, Configuration, Deployments, Site, deployed
from benchmarks.figures import LOAD_HEADER, Loads, load_columns, ratio_figures, server_figures, service_ratios
from benchmarks.load import Load, LoadResult, run_load
from benchmarks.medians import median, median_and_range
from benchmarks.network import measured_round_trip_ms
from benchmarks.pages import LIMITS, Positions
from benchmarks.servers import FASTAPI, RAW_WSGI, SERVICE, RunningServer, from_path, rotated

NO_DELAY = "0"
CONNECTIONS = (8, 32)
MANY_CONNECTIONS = CONNECTIONS[-1]
CONFIGURATIONS = tuple(map(Configuration, (SERVICE, FASTAPI, RAW_WSGI)))
WARM_UP_SECONDS = 1


@dataclass(frozen=True)
class Measurement:
    """One round at one round trip."""

    measured_round_trip_ms: float
    p50_one_connection_ms: float  # of the service
    loads: dict[int, Loads]  # by number of connections


Round = dict[str, Measurement]


def round_trip_names(delays_ms: Sequence[float]) -> list[str]:
    """Return the names of the local socket, of no delay, and of these delays."""
    return [LOCAL, NO_DELAY, *(f"{delay:g}" for delay in sorted({*delays_ms} - {0}))]


def measure_round_trips(
    database_url: str, positions: Positions, *, names: Sequence[str], load: Load, rounds: int
) -> list[Round]:
    """Measure the service and its peers at these round trips."""
    paths = page_paths(positions)
    with deployed(CONFIGURATIONS, database_url) as deployments:
        warm_up(deployments, paths, load=load)
        return [
            {name: measure(deployments.at(name), paths, load=load, number=number) for name in rotated(names, number)}
            for number in tqdm(range(rounds), disable=None)
        ]


def page_paths(positions: Positions) -> list[str]:
    return [from_path(LIMITS[0], start) for start in positions.anywhere]


def warm_up(deployments: Deployments, paths: Sequence[str], *, load: Load) -> None:
    """Let all workers connect and prepare their statements."""
    short_load = replace(load, connections=MANY_CONNECTIONS, seconds=WARM_UP_SECONDS)
    for site in (deployments.local, deployments.remote):
        measure_servers(site.servers, paths, load=short_load)


def measure(site: Site, paths: Sequence[str], *, load: Load, number: int) -> Measurement:
    return Measurement(
        measured_round_trip_ms(site.database_url),
        measure_servers(site.servers[:1], paths, load=replace(load, connections=1))[SERVICE.name].p50_ms,
        measure_loads(rotated(site.servers, number), paths, load=load),
    )


def measure_loads(servers: Sequence[RunningServer], paths: Sequence[str], *, load: Load) -> dict[int, Loads]:
    """Measure servers with all numbers of connections."""
    return {
        connections: measure_servers(servers, paths, load=replace(load, connections=connections))
        for connections in CONNECTIONS
    }


def measure_servers(servers: Sequence[RunningServer], paths: Sequence[str], *, load: Load) -> Loads:
    return {
        running.server.name: run_load(running.base_url, paths, server=running.process, load=load) for running in servers
    }


def results(rounds: Sequence[Round]) -> dict[str, Any]:
    """Return the medians of the rounds, and the tail: p99 over p50 of the service on the local socket."""
    return {
        "round_trip": {name: round_trip_figures(name, rounds) for name in rounds[0]},
        "tail": {
            str(connections): round(tail([at[LOCAL].loads[connections][SERVICE.name] for at in rounds]), 2)
            for connections in CONNECTIONS
        },
    }


def tail(loads: Sequence[LoadResult]) -> float:
    return statistics.median(load.p99_ms / load.p50_ms for load in loads)


def round_trip_figures(name: str, rounds: Sequence[Round]) -> dict[str, Any]:
    """Return the figures at one round trip. Those without a number of connections are for many connections."""
    measurements = [measured_at[name] for measured_at in rounds]
    by_connections = {
        connections: server_figures([measurement.loads[connections] for measurement in measurements])
        for connections in CONNECTIONS
    }
    return {
        **{server: figures["requests_per_second"] for server, figures in by_connections[MANY_CONNECTIONS].items()},
        **ratio_figures("of_local", ratios_to_no_delay(name, rounds)),
        **{name: round(median(measurements, name), 3) for name in ("p50_one_connection_ms", "measured_round_trip_ms")},
        **{f"connections_{connections}": figures for connections, figures in by_connections.items()},
    }


def ratios_to_no_delay(name: str, rounds: Sequence[Round]) -> list[float]:
    """Return the service's requests per second divided by those through the proxy without delay, for every round."""
    return [requests_per_second(at[name]) / requests_per_second(at[NO_DELAY]) for at in rounds]


def requests_per_second(measurement: Measurement) -> float:
    """Return the speed of the service with many connections."""
    return measurement.loads[MANY_CONNECTIONS][SERVICE.name].requests_per_second


def table(rounds: Sequence[Round]) -> Iterator[str]:
    """Yield the lines of a table with the medians of the rounds and the range of the ratios."""
    yield f"round trip connections server          {LOAD_HEADER}  service/server"
    for name in rounds[0]:
        for connections in CONNECTIONS:
            by_server = [at[name].loads[connections] for at in rounds]
            for server in by_server[0]:
                columns = load_columns([loads[server] for loads in by_server])
                ratios = median_and_range(service_ratios(server, by_server))
                yield f"{name:>10} {connections:>11} {server:<15} {columns}  {ratios}"
