"""A migrated, empty database. It is created once per test run, and every test database is a copy of it.

The variable `MIGRATED_DATABASE` contains the path of the SQLite file, or the name of the database on the PostgreSQL
server of `DATABASE_URL`.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import psycopg
from django.core.management import call_command
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests.support.connecting import connected_to

VARIABLE: Final = "MIGRATED_DATABASE"


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
    name = f"payments_{secrets.token_hex(6)}"
    template = sql.Identifier(copy_of or "template1")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), template))
        try:
            yield f"postgresql:///?{urlencode({**conninfo_to_dict(server), 'dbname': name})}"
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def name_of(url: str) -> str:
    """Return the path of a SQLite file, or the name of a PostgreSQL database."""
    if url.startswith("sqlite:///"):
        return url.removeprefix("sqlite:///")
    return str(conninfo_to_dict(url)["dbname"])
