"""Requests per second by the round trip to the database, as when the database is on another machine.

All round trips but `LOCAL` lead through the same proxy, which has a cost of its own. So `NO_DELAY` is their base.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.database import LoadedDatabase, log
from benchmarks.figures import load_figures, log_table, ratio_figures
from benchmarks.load import Case, LoadResult, measure, median, ratios, warm_up
from benchmarks.network import measured_round_trip_ms, network
from benchmarks.options import Options
from benchmarks.pages import LIMITS, SPEED, find_positions, service_over
from benchmarks.servers import FASTAPI, RAW_WSGI, SERVICE, RunningServer, all_running

LOCAL = "local"
NO_DELAY = "0"
SERVERS = (SERVICE, FASTAPI, RAW_WSGI)
CONNECTIONS = (8, 32)
MANY_CONNECTIONS = CONNECTIONS[-1]

Key = tuple[str, int, str]  # round trip, number of connections, server
Results = Mapping[Key, Sequence[LoadResult]]


def measure_round_trips(options: Options, database: LoadedDatabase) -> dict[str, Any]:
    """Measure the service and its peers on the local socket and at the round trips of the options."""
    delays = [NO_DELAY, *(f"{delay:g}" for delay in sorted({*options.round_trips_ms} - {0}))]
    with (
        network(database) as remote,
        all_running(*SERVERS, database=database) as near,
        all_running(*SERVERS, database=remote.database(database)) as far,
    ):
        log(f"Measuring round trips: {options.fewer_rounds} rounds")
        paths = find_positions(database.url).paths(near[0], LIMITS[0])
        every = {number: Case(server, paths, MANY_CONNECTIONS) for number, server in enumerate([*near, *far])}
        warm_up(every, seconds=options.fewer_seconds)
        cases = build_cases(near, LOCAL, paths)
        for delay in delays:
            cases |= build_cases(far, delay, paths, prepare=partial(remote.set_round_trip, float(delay)))
        results = measure(cases, seconds=options.fewer_seconds, rounds=options.fewer_rounds)
        measured = {LOCAL: measured_round_trip_ms(database)}
        for delay in delays:
            remote.set_round_trip(float(delay))
            measured[delay] = measured_round_trip_ms(remote.database(database))
    log_table(rows_of(results))
    return {"round_trip": {name: figures(name, results, measured[name]) for name in measured}, **tails(results)}


def build_cases(
    servers: Sequence[RunningServer], name: str, paths: Sequence[str], *, prepare: Callable[[], object] = lambda: None
) -> dict[Key, Case]:
    """Return the cases at one round trip: the service with one connection, and all servers with several."""
    return {(name, 1, SERVICE.name): Case(servers[0], paths, 1, prepare)} | {
        (name, connections, running.server.name): Case(running, paths, connections, prepare)
        for connections in CONNECTIONS
        for running in servers
    }


def rows_of(results: Results) -> list[dict[str, Any]]:
    return [
        {"round trip": name, "connections": connections, "server": server, **load_figures(loads)}
        | service_over(results[name, connections, SERVICE.name], loads)
        for (name, connections, server), loads in results.items()
    ]


def figures(name: str, results: Results, measured_ms: float) -> dict[str, Any]:
    """Return the figures at one round trip. Those without a number of connections are for many connections."""
    servers = [server.name for server in SERVERS]
    service = results[name, MANY_CONNECTIONS, SERVICE.name]
    speeds = {server: median(results[name, MANY_CONNECTIONS, server], SPEED) for server in servers}
    return {
        **{server: round(speed) for server, speed in speeds.items()},
        **ratio_figures("of_local", ratios(SPEED, service, results[NO_DELAY, MANY_CONNECTIONS, SERVICE.name])),
        "p50_one_connection_ms": round(median(results[name, 1, SERVICE.name], "p50_ms"), 3),
        "measured_round_trip_ms": round(measured_ms, 3),
        **{
            f"connections_{connections}": {
                server: server_figures(server, {each: results[name, connections, each] for each in servers})
                for server in servers
            }
            for connections in CONNECTIONS
        },
    }


def server_figures(name: str, results: Mapping[str, Sequence[LoadResult]]) -> dict[str, Any]:
    """Return the medians of a server. Those of a peer include the service's speed over the peer's."""
    over = {} if name == SERVICE.name else service_over(results[SERVICE.name], results[name])
    return load_figures(results[name]) | over


def tails(results: Results) -> dict[str, dict[str, float]]:
    """Return p99 over p50 of the service on the local socket, and its ratio to raw_wsgi."""
    tail, over_raw_wsgi = {}, {}
    for connections in CONNECTIONS:
        service, raw_wsgi = (results[LOCAL, connections, server.name] for server in (SERVICE, RAW_WSGI))
        tail[str(connections)] = round(median(service, "tail"), 2)
        over_raw_wsgi[str(connections)] = round(statistics.median(ratios("tail", service, raw_wsgi)), 2)
    return {"tail": tail, "tail_over_raw_wsgi": over_raw_wsgi}
