"""A migrated, empty database. It is created once per test run, and every test database is a copy of it.

The variable `MIGRATED_DATABASE` contains the path of the SQLite file, or the name of the database on the PostgreSQL
server of `DATABASE_URL`. If this is the coordinator of a Citus cluster, `CITUS_WORKER_PORTS` contains the ports of the
workers, and databases are copied on all servers (tests/support/citus.py).
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, LiteralString
from urllib.parse import urlencode

import psycopg
from django.core.management import call_command
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests.support.connecting import connected_to

VARIABLE: Final = "MIGRATED_DATABASE"
WORKERS_VARIABLE: Final = "CITUS_WORKER_PORTS"


@contextmanager
def migrated() -> Iterator[None]:
    """Create the database that `fresh_database` copies, in this process and in the workers that it starts."""
    with tempfile.TemporaryDirectory(prefix="payments-migrated-") as directory, empty_database(Path(directory)) as url:
        with connected_to(url):
            call_command("migrate", verbosity=0)
        os.environ[VARIABLE] = name_of(url)
        try:
            yield
        finally:
            del os.environ[VARIABLE]


@contextmanager
def empty_database(directory: Path) -> Iterator[str]:
    """Yield the URL of a database without tables. The tests' own database determines the kind."""
    with database(directory, copy_of=None) as url:
        yield url


@contextmanager
def fresh_database(directory: Path) -> Iterator[str]:
    """Yield the URL of a migrated, empty database. The tests' own database determines the kind."""
    with database(directory, copy_of=os.environ[VARIABLE]) as url:
        yield url


@contextmanager
def database(directory: Path, *, copy_of: str | None) -> Iterator[str]:
    server = os.environ.get("DATABASE_URL")
    if server is None:
        if copy_of is not None:
            shutil.copy(copy_of, directory / "payments.sqlite3")
        yield f"sqlite:///{directory}/payments.sqlite3"
        return
    with copied_database([server, *worker_urls(server)], copy_of=copy_of or "template1") as url:
        yield url


def worker_urls(coordinator: str) -> list[str]:
    """Return the URLs of the workers of a Citus cluster, on the host of its coordinator."""
    ports = os.environ.get(WORKERS_VARIABLE, "").split(",")
    return [postgresql_url(coordinator, port=port) for port in ports if port]


@contextmanager
def copied_database(servers: Sequence[str], *, copy_of: str, options: LiteralString = "") -> Iterator[str]:
    """Copy a database on all servers of a cluster, and yield the URL of the copy on the first one. Drop it afterwards.

    `servers` are the URLs of databases from which others can be created. `options` are those of CREATE DATABASE.
    """
    name = f"payments_{secrets.token_hex(6)}"
    copy, template = sql.Identifier(name), sql.Identifier(copy_of)
    with ExitStack() as stack:
        for server in servers:
            connection = stack.enter_context(psycopg.connect(server, autocommit=True))
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} {}").format(copy, template, sql.SQL(options)))
            stack.callback(connection.execute, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(copy))
        yield postgresql_url(servers[0], dbname=name)


def postgresql_url(url: str, **parameters: str) -> str:
    """Return a URL with other connection parameters."""
    return f"postgresql:///?{urlencode({**conninfo_to_dict(url), **parameters})}"


def name_of(url: str) -> str:
    """Return the path of a SQLite file, or the name of a PostgreSQL database."""
    if url.startswith("sqlite:///"):
        return url.removeprefix("sqlite:///")
    return str(conninfo_to_dict(url)["dbname"])
