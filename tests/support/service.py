"""The deployed service: its commands and its server in separate processes, and a client."""

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

from payments.ingest import ImportResult
from payments.models import ApiKey, Organization, Payment, identifiers
from tests.support.commands import run_command
from tests.support.connecting import connected_to
from tests.support.lines import export_payments, issue_key, store
from tests.support.password_hashing import QuickHasher
from tests.support.ports import free_port
from tests.support.processes import ROOT, wait_until_listening
from tests.support.waiting import SECONDS_MAX

RECONNECT_EVERY = 50
START = ROOT / "scripts/start"

# The end of `manage.py start`. The checks before it take as long as the start of a worker.
SERVE = """
import os
from payments_site.server import serve
port, workers, threads = (int(os.environ.get(name, "5")) for name in ("PORT", "WEB_WORKERS", "WEB_THREADS"))
serve("127.0.0.1", port=port, workers=workers, threads=threads)
"""

SETTINGS = (
    "DJANGO_ALLOW_ASYNC_UNSAFE",
    "DJANGO_SETTINGS_MODULE",
    *("DATABASE_URL", "DATABASE_REPLICA_URL", "REPLICA_LAG_SECONDS_MAX"),
    *("DEBUG", "SECRET_KEY", "SECRET_KEY_FALLBACKS"),
    *("ALLOWED_HOSTS", "PUBLIC_BASE_URL", "TRUST_PROXY", "HSTS_SECONDS"),
    *("RATE_LIMIT", "REQUEST_SECONDS_MAX", "ACCESS_LOG", "METRICS", "TRACING", "RUNTIME_DIRECTORY", "WEB_THREADS"),
    *("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_NAME", "OIDC_EMAIL_DOMAINS", "OIDC_REQUIRED_CLAIM"),
    *(
        "OIDC_NEW_USER_GROUP",
        "OIDC_ROLE_CLAIM",
        "OIDC_ORGANIZATIONS_CLAIM",
        "PASSWORD_LOGIN",
        "SECOND_FACTOR",
        "SESSION_IDLE_SECONDS",
    ),
)

# For tests of the time limits.
USUAL_LIMITS = {"REQUEST_SECONDS_MAX": "2.5"}

# For tests in which users log in. A hash in production takes a quarter of a second.
QUICK_PASSWORDS = {"DJANGO_SETTINGS_MODULE": "tests.support.quick_passwords"}

IS_COVERED = "COVERAGE_PROCESS_CONFIG" in os.environ  # pytest-cov is active


def inherited_environment() -> dict[str, str]:
    """Return the environment of the tests, without the settings of a service."""
    return {name: value for name, value in os.environ.items() if name not in SETTINGS}


@dataclass
class Service:
    """A database, the commands that fill it, and the server over it."""

    database_url: str
    port: int = field(default_factory=free_port)
    settings: dict[str, str] = field(default_factory=dict)
    workers: int = 1
    log: Path | None = None  # None: the server logs to the stderr of the tests
    server: subprocess.Popen[bytes] = field(init=False, repr=False)

    def unguarded(self) -> "Service":
        """Return a service over the same database that enforces no deadlines."""
        return Service(self.database_url, settings={"DJANGO_SETTINGS_MODULE": "tests.support.unguarded"}, log=self.log)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of the service, without the settings of the tests."""
        return inherited_environment() | {
            "DATABASE_URL": self.database_url,
            "SECRET_KEY": "for-tests-alone-0123456789-abcdefghijklmnopqrstuvwxyz",
            "RUNTIME_DIRECTORY": str(settings.PAYMENTS_RUNTIME_DIRECTORY),
            "PORT": str(self.port),
            "WEB_WORKERS": str(self.workers),
            "REQUEST_SECONDS_MAX": "60",  # a busy machine must not change the result of a test
            **({"DJANGO_SETTINGS_MODULE": "tests.support.covered"} if IS_COVERED else {}),
            **self.settings,
        }

    def run(self, *arguments: str, input: str | None = None) -> subprocess.CompletedProcess[str]:  # noqa: A002
        """Run a manage.py command, whether it succeeds or fails."""
        return run_command(
            [ROOT / ".venv/bin/python", "manage.py", *arguments], cwd=ROOT, env=self.environment, input=input
        )

    def popen(self, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
        """Start a manage.py command. The caller reads its output."""
        return subprocess.Popen(
            [ROOT / ".venv/bin/python", "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )

    def manage(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002
        """Run a manage.py command and return its output."""
        done = self.run(*arguments, input=input)
        assert done.returncode == 0, done.stderr
        return done.stdout

    # These methods use the database in this process: a manage.py process takes a second to start.

    def migrate(self, *target: str) -> None:
        with connected_to(self.database_url):
            call_command("migrate", *target, verbosity=0)

    def create_organization(self, organization: int, *, name: str = "Books") -> None:
        with connected_to(self.database_url):
            Organization.objects.create(id=organization, name=name)

    def create_api_key(self, *, organization: int, mode: str = "live", scope: str = "read") -> str:
        with connected_to(self.database_url):
            return issue_key(organization=organization, mode=mode, scope=scope)

    def revoke_api_key(self, text: str) -> None:
        with connected_to(self.database_url):
            ApiKey.objects.filter(digest=identifiers.digest(text)).revoke(now=timezone.now())

    def create_demo_payments(self, count: int) -> None:
        with connected_to(self.database_url):
            call_command("create_demo_payments", count=count, verbosity=0)

    def create_superuser(self, name: str, *, password: str) -> None:
        with connected_to(self.database_url):
            hashed = make_password(password, hasher=QuickHasher())
            User.objects.create(username=name, password=hashed, is_staff=True, is_superuser=True)

    def import_records(self, lines: Iterable[bytes]) -> ImportResult:
        with connected_to(self.database_url):
            return store(lines)

    def exported(self, **lookups: Any) -> str:
        """Return an export of the payments that match these lookups of the ORM."""
        with connected_to(self.database_url):
            return b"".join(export_payments(Payment.objects.filter(**lookups))).decode()

    @contextmanager
    def serving(self, *command: str | Path) -> Iterator["Service"]:
        """Serve until the block ends, with the server of scripts/start or another command."""
        with ExitStack() as stack:
            log = stack.enter_context(self.log.open("ab")) if self.log else None
            server = self.server = subprocess.Popen(
                command or [ROOT / ".venv/bin/python", "-c", SERVE], cwd=ROOT, env=self.environment, stderr=log
            )
            try:
                wait_until_listening(server, self.port, workers=self.workers)
                yield self
            finally:
                server.terminate()
                assert server.wait(timeout=SECONDS_MAX) == 0


class Walker:
    """A client that follows links. It reconnects regularly, so that every worker gets requests."""

    def __init__(self, base_url: str, key: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(base_url).netloc)
        self.key = key
        self.requests = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.connection.close()

    def get(self, href: str) -> Any:
        response, body = self.send(href)
        assert response.status == 200, body
        return msgspec.json.decode(body)

    def send(self, href: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
        """Return the response to a request, and its body. Underscores in header names become hyphens."""
        self.requests += 1
        if self.requests % RECONNECT_EVERY == 0:
            self.connection.close()
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        parts = urlsplit(href)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        self.connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}", **fields})
        response = self.connection.getresponse()
        return response, response.read()

    def walk(self, relation: str, href: str) -> Iterator[Any]:
        """Yield the page at `href`, and all further pages that links of this relation lead to."""
        next_href: str | None = href
        while next_href is not None:
            page = self.get(next_href)
            yield page
            next_href = page["_links"].get(relation, {}).get("href")


def workers(service: Service) -> list[psutil.Process]:
    """Return the running worker processes of a service."""
    children = psutil.Process(service.server.pid).children(recursive=True)
    return [child for child in children if is_worker(child)]


def is_worker(process: psutil.Process) -> bool:
    try:
        return "resource_tracker" not in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # the process has just ended
        return False


def count_started_workers(service: Service) -> int:
    """Return how many workers the service has ever started."""
    assert service.log is not None
    return service.log.read_text().count("Started worker")
