"""A simulated network: a proxy between the servers and PostgreSQL delays all bytes."""

import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import psycopg

from benchmarks.servers import PYTHON
from tests.support.processes import ROOT

STATEMENTS = 200
WARM_UP_STATEMENTS = 100  # the proxy corrects its delay meanwhile


@dataclass(frozen=True)
class Network:
    """A running proxy, and the URL of the database behind it."""

    process: subprocess.Popen[str]
    base_url: str

    def url(self, application_name: str) -> str:
        """Return the URL of the database, for connections that PostgreSQL lists under this name."""
        return f"{self.base_url}?application_name={quote(application_name)}"

    def set_round_trip(self, milliseconds: float) -> None:
        """Change the round trip of all connections, including open ones."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{milliseconds}\n")
        self.process.stdin.flush()
        assert read_line(self.process) == str(milliseconds), "the proxy has ended"


@contextmanager
def network(database_url: str) -> Iterator[Network]:
    """Yield a network without delay to a database that listens on a Unix socket."""
    with psycopg.connect(database_url) as connection:
        info = connection.info
        socket, user, database = f"{info.host}/.s.PGSQL.{info.port}", info.user, info.dbname
    command = [PYTHON, "-m", "benchmarks.delay_proxy", socket]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:  # noqa: S603
        port = read_line(process)
        yield Network(process, f"postgresql://{user}@127.0.0.1:{port}/{database}")


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line: str = process.stdout.readline()
    return line.rstrip()


def measured_round_trip_ms(url: str) -> float:
    """Return the median time of SELECT 1 in milliseconds."""
    with psycopg.connect(url, autocommit=True) as connection:
        times = [select_1_ms(connection) for _ in range(WARM_UP_STATEMENTS + STATEMENTS)]
    return statistics.median(times[WARM_UP_STATEMENTS:])


def select_1_ms(connection: psycopg.Connection[Any]) -> float:
    began = time.perf_counter()
    connection.execute("SELECT 1").fetchone()
    return (time.perf_counter() - began) * 1000
