"""Databases for the benchmarks, loaded by the commands of a checkout of this project."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from django.conf import settings as django_settings
from tqdm import tqdm

from benchmarks import dataset
from payments.record import encode
from tests.support.postgresql import get_server, server_directory
from tests.support.processes import ROOT
from tests.support.service import inherited_environment

# A quarter of the memory, as PostgreSQL's manual recommends. The default is 128 MB.
SHARED_BUFFERS = "1GB"
CONNECTIONS_MAX = 300  # several servers run at the same time
IMPORT = ("import_payments", "--create-organizations")


@dataclass(frozen=True)
class LoadedDatabase:
    """A database with payments, an API key for most of them, and the PostgreSQL server's main process."""

    url: str
    key: str = ""
    process: psutil.Process | None = None  # None: SQLite


class CommandFailed(Exception):
    """A command of manage.py has failed."""


@contextmanager
def postgresql(*names: str) -> Iterator[list[LoadedDatabase]]:
    """Yield empty databases of one PostgreSQL server. Afterwards, the server is removed."""
    with server_directory() as directory, get_server(directory / "data") as server:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET shared_buffers = '{SHARED_BUFFERS}'")
            connection.execute("ALTER SYSTEM SET max_wal_size = '8GB'")
            connection.execute(f"ALTER SYSTEM SET max_connections = {CONNECTIONS_MAX}")
            for name in names:
                connection.execute(f"CREATE DATABASE {name}")
        server.stop()
        server.start()
        process = psutil.Process(server.get_pid())
        yield [LoadedDatabase(server.get_uri(database=name), process=process) for name in names]


@contextmanager
def sqlite() -> Iterator[list[LoadedDatabase]]:
    """Yield a new SQLite database. Afterwards, it is removed."""
    with tempfile.TemporaryDirectory(prefix="payments-sqlite-") as directory:
        yield [LoadedDatabase(f"sqlite:///{directory}/payments.sqlite3")]


def environment(database_url: str, **settings: str) -> dict[str, str]:
    return {
        **inherited_environment(),
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "payments_site.settings",
        "SECRET_KEY": django_settings.SECRET_KEY,  # sessions of this process are valid in the service
        **settings,
    }


def popen(database_url: str, *command: str | Path, root: Path = ROOT, **streams: Any) -> subprocess.Popen[bytes]:
    """Start a command of a checkout's manage.py."""
    return subprocess.Popen(  # noqa: S603
        [root / ".venv/bin/python", "manage.py", *command], cwd=root, env=environment(database_url), **streams
    )


def load_payments(database: LoadedDatabase, count: int, *, root: Path = ROOT) -> LoadedDatabase:
    """Load payments into an empty database, and return it with an API key of the large organization."""
    log(f"Loading payments into {database.url.partition(':')[0]}")
    manage(database.url, "migrate", "--verbosity", "0", root=root)
    lines = (encode(record) + b"\n" for record in dataset.records(count))
    importing = popen(database.url, *IMPORT, "-", root=root, stdin=subprocess.PIPE)
    assert importing.stdin is not None
    importing.stdin.writelines(tqdm(lines, total=count, unit=" payments", disable=None))
    importing.stdin.close()
    if importing.wait():
        raise CommandFailed("The import failed.")
    if database.process:
        with psycopg.connect(database.url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
    options = ("--organization", str(dataset.LARGE.id), "--mode", dataset.MODE, "--name", "Benchmarks")
    key = manage(database.url, "create_api_key", *options, root=root).strip()
    return LoadedDatabase(database.url, key, database.process)


def manage(database_url: str, *command: str, root: Path = ROOT) -> str:
    """Run a command of a checkout's manage.py, and return its output.

    :raises CommandFailed: if its exit status is not 0
    """
    process = popen(database_url, *command, root=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = process.communicate()
    if process.returncode:
        raise CommandFailed(f"{' '.join(command)}: {errors.decode()}")
    return output.decode()


def log(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
