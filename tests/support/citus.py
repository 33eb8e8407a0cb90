"""Citus clusters for tests: a coordinator and workers, from Debian's PostgreSQL 15 and the Citus built for it.

The variable CITUS_BUILD names the script that builds Citus.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, LiteralString

import psycopg
from psycopg import sql

from tests.support.migrated import VARIABLE, WORKERS_VARIABLE
from tests.support.ports import free_port
from tests.support.postgresql import DebianPostgresql, server_directory
from tests.support.processes import ROOT

EXTENSION: Final = Path("/usr/lib/postgresql/15/lib/citus.so")

# Few shards, so that tests that create tables are fast.
SHARDS = 4

# Databases that tests copy: with local tables, and with distributed tables.
LOCAL = "local_tables"
DISTRIBUTED = "distributed_tables"


class CitusServer(DebianPostgresql):
    """One server of a cluster. It does not wait for its disk: no test needs data to survive a power failure.

    `synchronous_commit` stays on: without it, a move of a shard can lose payments that were committed just before.
    """

    settings: ClassVar[dict[str, str]] = {
        "shared_preload_libraries": "citus",
        "wal_level": "logical",  # moves of shards need it
        "max_worker_processes": "30",
        "citus.node_conninfo": "sslmode=disable",
        "citus.shard_count": str(SHARDS),
        "full_page_writes": "off",
    }

    def url_of(self, name: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def run(self, name: str, statement: LiteralString, *values: Any) -> Any:
        """Run a statement as superuser in the database of that name, and return the first value of its result."""
        with psycopg.connect(self.url_of(name), autocommit=True) as connection:
            cursor = connection.execute(sql.SQL(statement).format(*values))
            row = cursor.fetchone() if cursor.description else None
        return row and row[0]


@dataclass
class CitusCluster:
    """A coordinator and its workers."""

    directory: Path
    worker_count: int = 2
    server: type[CitusServer] = CitusServer
    port: int = field(default_factory=free_port)  # of the coordinator
    coordinator: CitusServer = field(init=False)
    workers: list[CitusServer] = field(init=False)
    standby: CitusServer | None = None  # of the coordinator

    def __post_init__(self) -> None:
        self.coordinator = self.server(self.directory / "coordinator", self.port)
        self.workers = [self.server(self.directory / f"worker{number}") for number in range(1, self.worker_count + 1)]

    @property
    def servers(self) -> list[CitusServer]:
        return [self.coordinator, *self.workers]

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables by which tests find the cluster."""
        return {
            "DATABASE_URL": self.coordinator.url_of("postgres"),
            WORKERS_VARIABLE: ",".join(str(worker.port) for worker in self.workers),
            VARIABLE: DISTRIBUTED,
        }

    def start(self) -> None:
        for server in self.servers:
            server.start()

    def coordinators_url(self, name: str) -> str:
        """Return the URL of a database on the coordinator or, after a failover, on its standby."""
        assert self.standby is not None
        hosts = f"127.0.0.1:{self.coordinator.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://postgres@{hosts}/{name}?target_session_attrs=read-write"

    def start_standby(self) -> CitusServer:
        """Copy the coordinator, and start the copy as its standby."""
        self.standby = self.server(self.directory / "standby")
        self.standby.copy(self.coordinator.url_of("postgres"))
        self.standby.start()
        return self.standby

    def stop(self) -> None:
        for server in filter(None, [*self.servers, self.standby]):
            if server.postmaster is not None:
                server.kill()

    def create_databases(self) -> None:
        """Create the databases that tests copy."""
        self.create_database(LOCAL)
        manage("migrate", "--verbosity=0", url=self.coordinator.url_of(LOCAL))
        self.close(LOCAL)
        self.create_copy(LOCAL, name=DISTRIBUTED)
        manage("distribute_payments", "--verbosity=0", url=self.coordinator.url_of(DISTRIBUTED))
        self.close(DISTRIBUTED)

    def create_database(self, name: str) -> None:
        """Create a database without tables on all servers."""
        for server in self.servers:
            server.run("postgres", "CREATE DATABASE {}", sql.Identifier(name))
            server.run(name, "CREATE EXTENSION citus")
        add_node = partial(self.coordinator.run, name)
        add_node("SELECT citus_set_coordinator_host('127.0.0.1', {})", self.coordinator.port)
        for worker in self.workers:
            add_node("SELECT citus_add_node('127.0.0.1', {})", worker.port)

    def close(self, name: str) -> None:
        """End all connections to a database and accept no more, so that it can be copied."""
        for server in self.servers:
            server.run("postgres", "ALTER DATABASE {} ALLOW_CONNECTIONS false", sql.Identifier(name))
            server.run("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}", name)

    def create_copy(self, template: str, *, name: str) -> None:
        """Copy a database on all servers. Its metadata remains valid: Citus stores no database name in it."""
        for server in self.servers:
            server.run("postgres", "CREATE DATABASE {} TEMPLATE {}", sql.Identifier(name), sql.Identifier(template))

    def create_distributed(self, name: str) -> str:
        """Create a database whose payments are distributed, and return its URL on the coordinator."""
        self.create_copy(DISTRIBUTED, name=name)
        return self.coordinator.url_of(name)

    def worker_of(self, organization: int, *, name: str) -> CitusServer:
        """Return the worker that has the payments of an organization in the database of that name."""
        port = self.coordinator.run(
            name,
            "SELECT nodeport FROM citus_shards "
            "WHERE shardid = get_shard_id_for_distribution_column('payments_payment', {})",
            organization,
        )
        return next(worker for worker in self.workers if worker.port == port)


def manage(*arguments: str, url: str) -> None:
    """Run a command of the service on the database at `url`."""
    environment = {**os.environ, "DATABASE_URL": url}
    subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True
    )


@contextmanager
def citus_cluster(**options: Any) -> Iterator[CitusCluster]:
    """Yield a running cluster with the databases that tests copy. Remove it afterwards."""
    require_citus()
    with server_directory() as directory:
        cluster = CitusCluster(directory, **options)
        try:
            cluster.start()
            cluster.create_databases()
            yield cluster
        finally:
            cluster.stop()


def require_citus() -> None:
    """Build Citus with CITUS_BUILD, unless it is installed."""
    if EXTENSION.exists():
        return
    if "CITUS_BUILD" not in os.environ:
        sys.exit("Citus is not installed. Set CITUS_BUILD to a script that builds it for Debian's PostgreSQL 15.")
    subprocess.run([os.environ["CITUS_BUILD"]], check=True)
