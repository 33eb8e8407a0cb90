"""A simulated network: a proxy between the servers and PostgreSQL delays all bytes."""

import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from benchmarks.database import LoadedDatabase
from benchmarks.servers import PYTHON
from tests.support.processes import ROOT

STATEMENTS = 200
WARM_UP_STATEMENTS = 100  # the proxy corrects its delay meanwhile


@dataclass(frozen=True)
class Network:
    """A running proxy in front of a PostgreSQL server."""

    process: subprocess.Popen[str]
    port: str

    def database(self, database: LoadedDatabase) -> LoadedDatabase:
        """Return a database of the server with its URL behind the proxy."""
        parameters = conninfo_to_dict(database.url)
        return replace(database, url=f"postgresql://{parameters['user']}@127.0.0.1:{self.port}/{parameters['dbname']}")

    def set_round_trip(self, milliseconds: float) -> None:
        """Change the round trip of all connections, including open ones."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{milliseconds}\n")
        self.process.stdin.flush()
        assert read_line(self.process) == str(milliseconds), "the proxy has ended"


@contextmanager
def network(database: LoadedDatabase) -> Iterator[Network]:
    """Yield a network without delay to a server that listens on a Unix socket."""
    with psycopg.connect(database.url) as connection:
        socket = f"{connection.info.host}/.s.PGSQL.{connection.info.port}"
    command = [PYTHON, "-m", "benchmarks.delay_proxy", socket]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:  # noqa: S603
        yield Network(process, read_line(process))


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line: str = process.stdout.readline()
    return line.rstrip()


def measured_round_trip_ms(database: LoadedDatabase) -> float:
    """Return the median time of SELECT 1 in milliseconds."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        times = [select_1_ms(connection) for _ in range(WARM_UP_STATEMENTS + STATEMENTS)]
    return statistics.median(times[WARM_UP_STATEMENTS:])


def select_1_ms(connection: psycopg.Connection[Any]) -> float:
    began = time.perf_counter()
    connection.execute("SELECT 1").fetchone()
    return (time.perf_counter() - began) * 1000
