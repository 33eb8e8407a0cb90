"""Requests per second with If-None-Match, answered with 304, over those of raw_wsgi for full pages."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from tqdm import tqdm

from benchmarks.figures import LOAD_HEADER, Loads, load_columns, service_ratios
from benchmarks.load import Load, LoadFailed, run_load
from benchmarks.medians import median_and_range
from benchmarks.pages import LIMITS, Positions
from benchmarks.servers import RAW_WSGI, SERVICE, RunningServer, from_path, rotated
from tests.support.service import Walker

NOT_MODIFIED_BYTES_MAX = 2000  # a 304 has no body

Round = dict[int, Loads]  # by page size


def measure_not_modified(
    servers: Sequence[RunningServer], positions: Positions, *, load: Load, rounds: int
) -> list[Round]:
    """Measure the service, which gets the ETags of its pages, and raw_wsgi, which gets none."""
    service, raw_wsgi = (find(server.name, servers) for server in (SERVICE, RAW_WSGI))
    paths = {limit: [from_path(limit, start) for start in positions.anywhere] for limit in LIMITS}
    requests = {
        limit: {SERVICE.name: with_etags(service, paths[limit], key=load.key), RAW_WSGI.name: paths[limit]}
        for limit in LIMITS
    }
    return [
        {limit: measure_servers(rotated((service, raw_wsgi), number), requests[limit], load=load) for limit in LIMITS}
        for number in tqdm(range(rounds), disable=None)
    ]


def find(name: str, servers: Sequence[RunningServer]) -> RunningServer:
    return next(running for running in servers if running.server.name == name)


def with_etags(service: RunningServer, paths: Iterable[str], *, key: str) -> list[str]:
    """Return the paths with the ETags of their pages, as load.lua reads them."""
    with Walker(service.base_url, key) as client:
        return [f"{path}\t{client.send(path)[0].headers['ETag']}" for path in paths]


def measure_servers(servers: Sequence[RunningServer], requests: Mapping[str, Sequence[str]], *, load: Load) -> Loads:
    """Measure servers with the requests of each.

    :raises LoadFailed: if the service sends pages
    """
    loads = {
        running.server.name: run_load(
            running.base_url, requests[running.server.name], server=running.process, load=load
        )
        for running in servers
    }
    if loads[SERVICE.name].response_bytes > NOT_MODIFIED_BYTES_MAX:
        raise LoadFailed("The service sent pages, although the client knew their ETags.")
    return loads


def ratios(rounds: Sequence[Round]) -> dict[str, float]:
    """Return the service's requests per second divided by those of raw_wsgi: medians, by page size."""
    return {f"limit_{limit}": round(statistics.median(raw_wsgi_ratios(limit, rounds)), 2) for limit in LIMITS}


def raw_wsgi_ratios(limit: int, rounds: Sequence[Round]) -> list[float]:
    return service_ratios(RAW_WSGI.name, [loads[limit] for loads in rounds])


def table(rounds: Sequence[Round]) -> Iterable[str]:
    """Yield the lines of a table with the medians of the rounds and the range of the ratios."""
    yield f"limit server          {LOAD_HEADER}  service/server"
    for limit in LIMITS:
        yield f"{limit:>5} {'service, 304':<15} {load_columns([loads[limit][SERVICE.name] for loads in rounds])}"
        columns = load_columns([loads[limit][RAW_WSGI.name] for loads in rounds])
        yield f"{limit:>5} {RAW_WSGI.name:<15} {columns}  {median_and_range(raw_wsgi_ratios(limit, rounds))}"
