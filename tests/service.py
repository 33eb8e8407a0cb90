"""The service in processes of its own: commands, server and HTTP, as its operators and clients have them."""

import http.client
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import msgspec
import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from payments_site.environment import database

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 10
RECONNECT_EVERY = 50
SETTINGS = (
    *("DATABASE_URL", "DATABASE_REPLICA_URL", "REPLICA_LAG_SECONDS_MAX"),
    *("DEBUG", "SECRET_KEY", "SECRET_KEY_FALLBACKS"),
    *("ALLOWED_HOSTS", "PUBLIC_BASE_URL", "TRUST_PROXY", "HSTS_SECONDS"),
    *("RATE_LIMIT", "BAD_KEY_LIMIT", "ACCESS_LOG", "METRICS", "TRACING"),
)


@contextmanager
def fresh_database(directory: Path) -> Iterator[str]:
    """Give the address of an empty database of the kind that the tests run on."""
    server = os.environ.get("DATABASE_URL")
    if server is None:
        yield f"sqlite:///{directory}/payments.sqlite3"
        return
    name = f"payments_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield f"postgresql:///?{urlencode({**conninfo_to_dict(server), 'dbname': name})}"
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def connected_to(url: str) -> Iterator[None]:
    """Have this thread's ORM, and what is built on it, read and write another database of the kind it is used to."""
    usual = connections[DEFAULT_DB_ALIAS]
    other = type(usual)({**usual.settings_dict, **database(url)}, DEFAULT_DB_ALIAS)
    connections[DEFAULT_DB_ALIAS] = other
    try:
        yield
    finally:
        other.close()
        connections[DEFAULT_DB_ALIAS] = usual


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait_until_listening(server: subprocess.Popen[bytes], port: int, *, seconds_max: int = START_SECONDS_MAX) -> None:
    for _ in range(seconds_max * 10):
        assert server.poll() is None, f"{server.args!r} ended with {server.returncode}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"{server.args!r} did not begin to listen")


@dataclass
class Service:
    """A database, the commands that fill it, and the server over it."""

    database_url: str
    port: int = field(default_factory=free_port)
    settings: dict[str, str] = field(default_factory=dict)
    log: Path | None = None  # where the server's log goes, if not to the tests' own stderr
    server: subprocess.Popen[bytes] = field(init=False, repr=False)

    def unguarded(self) -> "Service":
        """Return another over the same database, which waits as long as that has it wait."""
        return Service(self.database_url, settings={"DJANGO_SETTINGS_MODULE": "tests.unguarded"}, log=self.log)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the tests' own settings."""
        inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        return inherited | {
            "DATABASE_URL": self.database_url,
            "SECRET_KEY": "for-tests-alone-0123456789-abcdefghijklmnopqrstuvwxyz",
            "PORT": str(self.port),
            "WEB_WORKERS": "2",
            **self.settings,
        }

    def run(self, *arguments: str, input: str | None = None) -> subprocess.CompletedProcess[str]:  # noqa: A002
        """Run one of manage.py's commands, whatever comes of it."""
        return subprocess.run(
            [ROOT / ".venv/bin/python", "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            input=input,
            capture_output=True,
            text=True,
            check=False,
        )

    def popen(self, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
        """Begin one of manage.py's commands; its output is read by whoever asked for it."""
        return subprocess.Popen(
            [ROOT / ".venv/bin/python", "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )

    def manage(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002
        """Run one of manage.py's commands and return what it wrote to stdout."""
        done = self.run(*arguments, input=input)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def create_api_key(self, *, organization: int, mode: str) -> str:
        arguments = ("--organization", str(organization), "--mode", mode, "--name", "Tests")
        return self.manage("create_api_key", *arguments).strip()

    @contextmanager
    def running(self) -> Iterator["Service"]:
        """Migrate the database and serve it until the block ends."""
        self.manage("migrate", "--verbosity", "0")
        with self.serving():
            yield self

    @contextmanager
    def serving(self, *command: str) -> Iterator[None]:
        """Serve it until the block ends; `command` starts another server than ours."""
        with ExitStack() as stack:
            log = stack.enter_context(self.log.open("ab")) if self.log else None
            server = self.server = subprocess.Popen(
                command or [ROOT / "scripts/start"], cwd=ROOT, env=self.environment, stderr=log
            )
            try:
                wait_until_listening(server, self.port)
                yield
            finally:
                server.terminate()
                assert server.wait(timeout=STOP_SECONDS_MAX) == 0


class Walker:
    """A client that follows links, and now and then connects anew, so that every worker has its share."""

    def __init__(self, base_url: str, key: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(base_url).netloc)
        self.key = key
        self.requests = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.connection.close()

    def get(self, href: str) -> Any:
        response, body = self.ask(href)
        assert response.status == 200, body
        return msgspec.json.decode(body)

    def ask(self, href: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
        """Send a request, whatever is answered; a header's underscores stand for hyphens."""
        self.requests += 1
        if self.requests % RECONNECT_EVERY == 0:
            self.connection.close()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        parts = urlsplit(href)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        self.connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}", **given})
        response = self.connection.getresponse()
        return response, response.read()

    def walk(self, relation: str, href: str) -> Iterator[Any]:
        """Yield the page at `href` and all that follow it by links of that name."""
        next_href: str | None = href
        while next_href is not None:
            page = self.get(next_href)
            yield page
            next_href = page["_links"].get(relation, {}).get("href")
