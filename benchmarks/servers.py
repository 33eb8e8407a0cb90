"""The service and its peers, started as in production, with two processes each."""

import os
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import quote, urlencode

import psutil

from tests.support.ports import free_port
from tests.support.processes import ROOT, START_SECONDS_MAX, STOP_SECONDS_MAX, wait_until_listening

WORKERS = 2
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
PYTHON = str(ROOT / ".venv/bin/python")
ADDRESS = "127.0.0.1:{port}"

Item = TypeVar("Item")


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
    settings: str = "payments_site.settings"


@dataclass(frozen=True)
class RunningServer:
    """A server that accepts requests."""

    server: Server
    base_url: str
    process: psutil.Process


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
        "benchmarks.peers.stock_drf.wsgi",
    ),
    cursor_path,
)
FASTAPI = Server(
    "fastapi",
    (
        *(PYTHON, "-m", "uvicorn", "--port", "{port}", "--workers", str(WORKERS), "--no-access-log"),
        *("--log-level", "warning", "benchmarks.peers.fastapi_asyncpg:app"),
    ),
    from_path,
)
RAW_WSGI = Server(
    "raw_wsgi",
    (
        *(PYTHON, "-m", "granian", "--interface", "wsgi", "--port", "{port}", "--workers", str(WORKERS)),
        *("--blocking-threads", "1", "--no-ws", "--log-level", "warning", "benchmarks.peers.raw_wsgi:application"),
    ),
    from_path,
)
PEERS = (STOCK_DRF, FASTAPI, RAW_WSGI)


def service_with(workers: int, threads: int) -> Server:
    """Return the service with other numbers of workers and threads."""
    command = (
        *(PYTHON, "-m", "granian", "--interface", "wsgi", "--port", "{port}", "--workers", str(workers)),
        *("--blocking-threads", str(threads), "--no-ws", "--log-level", "warning", "payments_site.wsgi:application"),
    )
    return Server(f"{workers}x{threads}", command, from_path)


# The service with other settings.
VARIANTS = (
    service_with(1, 1),
    service_with(2, 2),
    service_with(4, 1),
    replace(SERVICE, name="new_connections", settings="benchmarks.settings.new_connections"),
    replace(SERVICE, name="django_backend", settings="benchmarks.settings.django_backend"),
)


@contextmanager
def running(
    server: Server, database_url: str, *, root: Path = ROOT, settings: Mapping[str, str] = NO_SETTINGS
) -> Iterator[RunningServer]:
    """Start a server and wait until it listens. Afterwards, it is stopped."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="payments-run-") as runtime_directory:
        environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "DJANGO_SETTINGS_MODULE": server.settings,
            "RUNTIME_DIRECTORY": runtime_directory,
            "PORT": str(port),
            "WEB_WORKERS": str(WORKERS),
            "PYTHONPATH": str(root),
            **settings,
        }
        command = [part.format(port=port) for part in server.command]
        process = subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603
        try:
            wait_until_listening(process, port, seconds_max=START_SECONDS_MAX)
            yield RunningServer(server, f"http://127.0.0.1:{port}", psutil.Process(process.pid))
        finally:
            process.terminate()
            process.wait(timeout=STOP_SECONDS_MAX)


def rotated(items: Sequence[Item], count: int) -> list[Item]:
    """Return the items with another one first: the caches contain less of what the first server needs."""
    first = count % len(items)
    return [*items[first:], *items[:first]]
