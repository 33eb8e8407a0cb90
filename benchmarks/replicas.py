"""Cost of reading on replicas: processor time of the service, the primary and the replicas per request."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import psutil

from benchmarks.load import Load, cpu_seconds, run_load
from benchmarks.medians import median, median_and_range
from benchmarks.pages import LIMITS, Positions
from benchmarks.servers import SERVICE, RunningServer, from_path, running
from tests.support.postgresql import Cluster

DATABASE = "payments"

PRIMARY_ONLY = "only the primary"
PRIMARY_AS_REPLICA = "the primary, as its own replica"


@dataclass(frozen=True)
class Cost:
    """Requests per second, and milliseconds of processor time per request."""

    requests_per_second: float
    service_ms: float
    primary_ms: float
    replicas_ms: float

    @property
    def total_ms(self) -> float:
        return self.service_ms + self.primary_ms + self.replicas_ms


def replica_urls(servers: Cluster) -> dict[str, str | None]:
    """Return the DATABASE_REPLICA_URL of each configuration."""
    parameters = "?target_session_attrs=prefer-standby&load_balance_hosts=random"
    return {
        PRIMARY_ONLY: None,
        PRIMARY_AS_REPLICA: servers.address(servers.primary, name=DATABASE),
        "the primary and one replica": servers.address(servers.replicas[0], name=DATABASE) + parameters,
        "the primary and two replicas": servers.address(*servers.replicas, name=DATABASE) + parameters,
    }


def measure_replicas(servers: Cluster, positions: Positions, *, load: Load, rounds: int) -> Iterator[str]:
    """Yield the lines of a table with the medians of the rounds. A first round is not counted."""
    primary_url = servers.address(servers.primary, name=DATABASE)
    with ExitStack() as stack:
        services = {
            name: stack.enter_context(running(SERVICE, primary_url, settings={"DATABASE_REPLICA_URL": url or ""}))
            for name, url in replica_urls(servers).items()
        }
        results = [measure_round(servers, services, positions, load=load) for _ in range(rounds + 1)][1:]
    yield "| limit | servers | requests/s | ms: service | primary | replicas | total, compared with only the primary |"
    yield "|---|---|---|---|---|---|---|"
    for limit in LIMITS:
        for name in services:
            costs = [result[limit, name] for result in results]
            ratios = [result[limit, name].total_ms / result[limit, PRIMARY_ONLY].total_ms for result in results]
            yield (
                f"| {limit} | {name} | {median(costs, 'requests_per_second'):.0f} | {median(costs, 'service_ms'):.3f} "
                f"| {median(costs, 'primary_ms'):.3f} | {median(costs, 'replicas_ms'):.3f} "
                f"| {median_and_range(ratios, digits=3)} |"
            )


def measure_round(
    servers: Cluster, services: Mapping[str, RunningServer], positions: Positions, *, load: Load
) -> dict[tuple[int, str], Cost]:
    """Measure every page size with every configuration."""
    return {
        (limit, name): measure(servers, service, [from_path(limit, start) for start in positions.anywhere], load=load)
        for limit in LIMITS
        for name, service in services.items()
    }


def measure(servers: Cluster, service: RunningServer, paths: Sequence[str], *, load: Load) -> Cost:
    before = sum(map(cpu_seconds, replica_processes(servers)))
    result = run_load(service.base_url, paths, server=service.process, load=load)
    replicas_seconds = sum(map(cpu_seconds, replica_processes(servers))) - before
    requests = result.requests_per_second * load.seconds
    return Cost(
        result.requests_per_second, result.server_cpu_ms, result.database_cpu_ms, replicas_seconds * 1000 / requests
    )


def replica_processes(servers: Cluster) -> list[psutil.Process]:
    return [replica.postmaster for replica in servers.replicas if replica.postmaster is not None]
