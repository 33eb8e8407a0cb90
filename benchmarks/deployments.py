"""Servers beside the database, and the same servers with a network between them and the database."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.network import Network, network
from benchmarks.servers import NO_SETTINGS, RunningServer, Server, running

LOCAL = "local"


class Configuration(NamedTuple):
    """A server and its environment variables."""

    server: Server
    settings: Mapping[str, str] = NO_SETTINGS


@dataclass(frozen=True)
class Site:
    """Running servers, and a URL of the database for other clients of this site."""

    servers: list[RunningServer]
    database_url: str


@dataclass(frozen=True)
class Deployments:
    """The same servers at two sites. The round trip between the remote site and the database can be changed."""

    local: Site
    remote: Site
    network: Network

    def at(self, round_trip: str) -> Site:
        """Return the site with this round trip: `LOCAL`, or milliseconds."""
        if round_trip == LOCAL:
            return self.local
        self.network.set_round_trip(float(round_trip))
        return self.remote


@contextmanager
def deployed(configurations: Sequence[Configuration], database_url: str) -> Iterator[Deployments]:
    """Start servers at both sites. Afterwards, they are stopped."""
    with network(database_url) as remote, ExitStack() as stack:

        def site(url: Callable[[str], str]) -> Site:
            servers = [
                stack.enter_context(running(server, url(server.name), settings=settings))
                for server, settings in configurations
            ]
            return Site(servers, url("benchmarks"))

        yield Deployments(site(lambda _: database_url), site(remote.url), remote)
