"""What a replica costs a request, and takes off the primary: processor time of each, by how many servers are read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import psutil

from benchmarks.load import Load, cpu_seconds, put_under_load
from benchmarks.medians import median, ranged
from benchmarks.pages import LIMITS, Places
from benchmarks.servers import SERVICE, Running, from_path, running
from tests.support.postgresql import Cluster

NAME = "payments"

ALONE = "the primary alone"
ROUTED = "the primary, as its own replica"


@dataclass(frozen=True)
class Cost:
    """Requests a second, and milliseconds of processor time for each of them."""

    requests_per_second: float
    service_ms: float
    primary_ms: float
    replicas_ms: float

    @property
    def all_ms(self) -> float:
        return self.service_ms + self.primary_ms + self.replicas_ms


def replica_urls(servers: Cluster) -> dict[str, str | None]:
    """Return by what name which servers are read."""
    preferring = "?target_session_attrs=prefer-standby&load_balance_hosts=random"
    return {
        ALONE: None,
        ROUTED: servers.address(servers.primary, name=NAME),
        "the primary and one replica": servers.address(servers.replicas[0], name=NAME) + preferring,
        "the primary and two replicas": servers.address(*servers.replicas, name=NAME) + preferring,
    }


def measure_replicas(servers: Cluster, places: Places, *, load: Load, rounds: int) -> Iterator[str]:
    """Yield the lines of a table: medians of rounds in which each has its turn."""
    written = servers.address(servers.primary, name=NAME)
    with ExitStack() as stack:
        services = {
            each: stack.enter_context(running(SERVICE, written, settings={"DATABASE_REPLICA_URL": url or ""}))
            for each, url in replica_urls(servers).items()
        }
        found = [measured(servers, services, places, load=load) for _ in range(rounds + 1)][1:]
    yield "| limit | read on | requests/s | ms: service | primary | replicas | all, over the primary alone |"
    yield "|---|---|---|---|---|---|---|"
    for limit in LIMITS:
        for each in services:
            costs = [measured[limit, each] for measured in found]
            over = [measured[limit, each].all_ms / measured[limit, ALONE].all_ms for measured in found]
            yield (
                f"| {limit} | {each} | {median(costs, 'requests_per_second'):.0f} | {median(costs, 'service_ms'):.3f} "
                f"| {median(costs, 'primary_ms'):.3f} | {median(costs, 'replicas_ms'):.3f} "
                f"| {ranged(over, digits=3)} |"
            )


def measured(
    servers: Cluster, services: Mapping[str, Running], places: Places, *, load: Load
) -> dict[tuple[int, str], Cost]:
    return {
        (limit, each): cost(servers, service, [from_path(limit, start) for start in places.anywhere], load=load)
        for limit in LIMITS
        for each, service in services.items()
    }


def cost(servers: Cluster, service: Running, paths: Sequence[str], *, load: Load) -> Cost:
    before = sum(map(cpu_seconds, replicas_of(servers)))
    found = put_under_load(service.base_url, paths, server=service.process, load=load)
    replicas_seconds = sum(map(cpu_seconds, replicas_of(servers))) - before
    requests = found.requests_per_second * load.seconds
    return Cost(
        found.requests_per_second, found.server_cpu_ms, found.database_cpu_ms, replicas_seconds * 1000 / requests
    )


def replicas_of(servers: Cluster) -> list[psutil.Process]:
    return [replica.postmaster for replica in servers.replicas if replica.postmaster is not None]
