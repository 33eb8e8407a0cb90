"""The service and its peers, started as in production, usually with two processes each."""

import os
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import psutil

from benchmarks.database import LoadedDatabase, environment
from tests.support.ports import free_port
from tests.support.processes import ROOT, wait_until_listening
from tests.support.service import Walker
from tests.support.waiting import SECONDS_MAX

WORKERS = int(os.environ.get("WEB_WORKERS", "2"))
PYTHON = str(ROOT / ".venv/bin/python")
ADDRESS = "127.0.0.1:{port}"
BYTES_PER_MB = 2**20


@dataclass(frozen=True)
class Position:
    """A position in the list: a payment's ID, and its `created_at` as PostgreSQL formats it."""

    payment_id: str
    created_at: str


@dataclass(frozen=True)
class Server:
    """The command that starts a server, and the path of its page that starts at a position."""

    name: str
    command: tuple[str, ...]
    path: Callable[[int, Position], str]
    has_socket_per_worker: bool = True  # as with granian


@dataclass(frozen=True)
class RunningServer:
    """A server that accepts requests, and its database."""

    server: Server
    database: LoadedDatabase
    base_url: str
    process: psutil.Process

    def client(self) -> Walker:
        return Walker(self.base_url, self.database.key)

    @property
    def largest_worker_mb(self) -> int:
        largest: int = max(child.memory_info().rss for child in self.process.children(recursive=True))
        return round(largest / BYTES_PER_MB)


def from_path(limit: int, start: Position) -> str:
    return f"/v2/payments?limit={limit}&from={start.payment_id}"


def cursor_path(limit: int, start: Position) -> str:
    cursor = b64encode(urlencode({"p": start.created_at}).encode()).decode()
    return f"/v2/payments?limit={limit}&cursor={quote(cursor)}"


SERVICE = Server("service", ("scripts/start",), from_path)
STOCK_DRF = Server(
    "stock_drf",
    (
        *(PYTHON, "-m", "gunicorn", "--bind", ADDRESS, "--workers", str(WORKERS), "--log-level", "warning"),
        "benchmarks.peers.stock_drf:application",
    ),
    cursor_path,
    has_socket_per_worker=False,
)
FASTAPI = Server(
    "fastapi",
    (
        *(PYTHON, "-m", "uvicorn", "--port", "{port}", "--workers", str(WORKERS), "--no-access-log"),
        *("--log-level", "warning", "benchmarks.peers.fastapi_asyncpg:app"),
    ),
    from_path,
    has_socket_per_worker=False,
)
RAW_WSGI = Server(
    "raw_wsgi",
    (
        *(PYTHON, "-m", "granian", "--interface", "wsgi", "--port", "{port}", "--workers", str(WORKERS)),
        *("--blocking-threads", "1", "--no-ws", "--log-level", "warning", "benchmarks.peers.raw_wsgi:application"),
    ),
    from_path,
)


@contextmanager
def running(
    server: Server, database: LoadedDatabase, *, root: Path = ROOT, workers: int = WORKERS, threads: int | None = None
) -> Iterator[RunningServer]:
    """Start a server of a checkout and wait until it listens. Afterwards, it is stopped."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="payments-run-") as runtime_directory:
        settings = {"WEB_WORKERS": str(workers), **({"WEB_THREADS": str(threads)} if threads else {})}
        listeners = workers if server.has_socket_per_worker else 1
        process = subprocess.Popen(  # noqa: S603
            [part.format(port=port) for part in server.command],
            cwd=root,
            env=environment(
                database.url, RUNTIME_DIRECTORY=runtime_directory, PORT=str(port), PYTHONPATH=str(root), **settings
            ),
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_until_listening(process, port, workers=listeners)
            yield RunningServer(server, database, f"http://127.0.0.1:{port}", psutil.Process(process.pid))
        finally:
            process.terminate()
            process.wait(timeout=SECONDS_MAX)


@contextmanager
def all_running(*servers: Server, database: LoadedDatabase) -> Iterator[list[RunningServer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(running(server, database)) for server in servers]
