"""The service and its peers, as they would be deployed: two processes each."""

import os
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, urlencode

import psutil

from tests.support.ports import free_port
from tests.support.processes import ROOT, STOP_SECONDS_MAX, wait_until_listening

WORKERS = 2
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
START_SECONDS_MAX = 60
PYTHON = str(ROOT / ".venv/bin/python")
ON_PORT = "127.0.0.1:{port}"


@dataclass(frozen=True)
class Start:
    """A place in the list: a payment's id, and its moment as PostgreSQL writes it."""

    payment_id: str
    created_at: str


@dataclass(frozen=True)
class Server:
    """How a server is started, and how it is asked for the page that begins at a place."""

    name: str
    command: tuple[str, ...]
    path: Callable[[int, Start], str]
    settings: str = "payments_site.settings"


@dataclass(frozen=True)
class Running:
    """A server that answers."""

    server: Server
    base_url: str
    process: psutil.Process


def from_path(limit: int, start: Start) -> str:
    return f"/v2/payments?limit={limit}&from={start.payment_id}"


def cursor_path(limit: int, start: Start) -> str:
    cursor = b64encode(urlencode({"p": start.created_at}).encode()).decode()
    return f"/v2/payments?limit={limit}&cursor={quote(cursor)}"


SERVICE = Server("service", ("scripts/start",), from_path)
STOCK_DRF = Server(
    "stock_drf",
    (
        *(PYTHON, "-m", "gunicorn", "--bind", ON_PORT, "--workers", str(WORKERS), "--log-level", "warning"),
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
    """Return the service with other settings than its own."""
    command = (
        *(PYTHON, "-m", "granian", "--interface", "wsgi", "--port", "{port}", "--workers", str(workers)),
        *("--blocking-threads", str(threads), "--no-ws", "--log-level", "warning", "payments_site.wsgi:application"),
    )
    return Server(f"{workers}x{threads}", command, from_path)


SETTINGS = (
    service_with(1, 1),
    service_with(2, 2),
    service_with(4, 1),
    replace(SERVICE, name="new_connections", settings="benchmarks.settings.new_connections"),
    replace(SERVICE, name="django_backend", settings="benchmarks.settings.django_backend"),
)


@contextmanager
def running(
    server: Server, database_url: str, *, root: Path = ROOT, settings: Mapping[str, str] = NO_SETTINGS
) -> Iterator[Running]:
    """Start a server, wait until it listens, and end it afterwards."""
    port = free_port()
    environment = {
        **os.environ,
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": server.settings,
        "PORT": str(port),
        "WEB_WORKERS": str(WORKERS),
        "PYTHONPATH": str(root),
        **settings,
    }
    command = [part.format(port=port) for part in server.command]
    process = subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603
    try:
        wait_until_listening(process, port, seconds_max=START_SECONDS_MAX)
        yield Running(server, f"http://127.0.0.1:{port}", psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(timeout=STOP_SECONDS_MAX)
