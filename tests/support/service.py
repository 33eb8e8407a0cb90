"""The service in processes of its own: commands, server and HTTP, as its operators and clients have them."""

import http.client
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec
import psutil
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from payments import api_keys
from payments.export import export_payments
from payments.ingest.imports import ImportResult
from payments.models import ApiKey, Organization, Payment
from tests.support.connecting import connected_to
from tests.support.loading import issue_key, store
from tests.support.ports import free_port
from tests.support.processes import ROOT, STOP_SECONDS_MAX, wait_until_listening

RECONNECT_EVERY = 50
SETTINGS = (
    "DJANGO_ALLOW_ASYNC_UNSAFE",
    "DJANGO_SETTINGS_MODULE",
    *("DATABASE_URL", "DATABASE_REPLICA_URL", "REPLICA_LAG_SECONDS_MAX"),
    *("DEBUG", "SECRET_KEY", "SECRET_KEY_FALLBACKS"),
    *("ALLOWED_HOSTS", "PUBLIC_BASE_URL", "TRUST_PROXY", "HSTS_SECONDS"),
    *("RATE_LIMIT", "BAD_KEY_LIMIT", "ACCESS_LOG", "METRICS", "TRACING", "RUNTIME_DIRECTORY"),
)

IS_COVERED = "COVERAGE_PROCESS_CONFIG" in os.environ  # pytest-cov is active


@dataclass
class Service:
    """A database, the commands that fill it, and the server over it."""

    database_url: str
    port: int = field(default_factory=free_port)
    settings: dict[str, str] = field(default_factory=dict)
    workers: int = 1  # of scripts/start
    log: Path | None = None  # where the server's log goes, if not to the tests' own stderr
    server: subprocess.Popen[bytes] = field(init=False, repr=False)

    def unguarded(self) -> "Service":
        """Return another over the same database, which waits as long as that has it wait."""
        return Service(self.database_url, settings={"DJANGO_SETTINGS_MODULE": "tests.support.unguarded"}, log=self.log)

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
            "RUNTIME_DIRECTORY": str(settings.RUNTIME_DIRECTORY),
            "PORT": str(self.port),
            "WEB_WORKERS": str(self.workers),
            **({"DJANGO_SETTINGS_MODULE": "tests.support.covered"} if IS_COVERED else {}),
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

    # What tests need beforehand is written in this process: a process of manage.py takes a second to start.

    def migrate(self, *target: str) -> None:
        with connected_to(self.database_url):
            call_command("migrate", *target, verbosity=0)

    def create_organization(self, organization: int, *, name: str = "Books") -> None:
        with connected_to(self.database_url):
            Organization.objects.create(id=organization, name=name)

    def create_api_key(self, *, organization: int, mode: str) -> str:
        with connected_to(self.database_url):
            return issue_key(organization=organization, mode=mode)

    def revoke_api_key(self, text: str) -> None:
        with connected_to(self.database_url):
            ApiKey.objects.filter(digest=api_keys.digest(text)).revoke(now=timezone.now())

    def create_demo_payments(self, count: int) -> None:
        with connected_to(self.database_url):
            call_command("create_demo_payments", count=count, verbosity=0)

    def create_superuser(self, name: str, *, password: str) -> None:
        with connected_to(self.database_url):
            hashed = make_password(password, hasher="pbkdf2_sha256")
            User.objects.create(username=name, password=hashed, is_staff=True, is_superuser=True)

    def import_records(self, lines: Iterable[bytes]) -> ImportResult:
        with connected_to(self.database_url):
            return store(lines)

    def exported(self, **selection: Any) -> str:
        """Return what `export_payments` writes, of the payments that match a selection of the ORM."""
        with connected_to(self.database_url):
            return b"".join(export_payments(Payment.objects.filter(**selection))).decode()

    @contextmanager
    def serving(self, *command: str) -> Iterator["Service"]:
        """Serve until the block ends; `command` starts another server than ours."""
        with ExitStack() as stack:
            log = stack.enter_context(self.log.open("ab")) if self.log else None
            server = self.server = subprocess.Popen(
                command or [ROOT / "scripts/start"], cwd=ROOT, env=self.environment, stderr=log
            )
            try:
                wait_until_listening(server, self.port, workers=1 if command else self.workers)
                yield self
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


def workers(service: Service) -> list[psutil.Process]:
    children = psutil.Process(service.server.pid).children(recursive=True)
    return [child for child in children if is_worker(child)]


def is_worker(process: psutil.Process) -> bool:
    try:
        return "resource_tracker" not in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # it has just ended
        return False


def begun(service: Service) -> int:
    """Return how many workers have ever begun to serve."""
    assert service.log is not None
    return service.log.read_text().count("Started worker")
