"""The service that the attacks attack, and the clients that must not notice it."""

import http.client
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from django.conf import settings as django_settings
from django.contrib.auth.models import User

from tests.support.admin_site import Staff
from tests.support.connecting import connected_to
from tests.support.lines import compact, lines_with_order, record
from tests.support.load import Load
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.service import USUAL_LIMITS, Service
from tests.support.sql import execute

ATTACKER, VICTIM, LARGE = 1, 2, 3  # organizations
VICTIM_PAYMENTS = 5_000
WORKERS = 2
CLIENTS = 2
PAUSE_SECONDS = 0.02
REQUEST_SECONDS_MAX = 60

# How long the p99 of the victim's requests may be.
P99_MS_MAX = 250

PASSWORD = "correct-horse-battery"  # noqa: S105  for the attack alone
CSRF_TOKEN = "a" * 32

# A record of almost 64 KiB in texts of 15,000 bytes.
LARGE_PAYMENTS = 250
LARGE_TEXT = "x" * 15_000


class Outcome(NamedTuple):
    """What happened during an attack, and whether that is harmless."""

    happened: str
    is_harmless: bool


@dataclass(frozen=True)
class Impact:
    """How long the victim's requests took, in seconds, and how many of them failed."""

    seconds: list[float]
    failed: int

    @property
    def p99_ms(self) -> float:
        """Return the 99th percentile, in milliseconds, for requests that arrive at regular intervals.

        A client that waits sends no requests meanwhile. Those that it would have sent count too: each waits for the
        rest of the time.
        """
        waits = [
            seconds - number * PAUSE_SECONDS
            for seconds in self.seconds
            for number in range(int(seconds / PAUSE_SECONDS) + 1)
        ]
        return sorted(waits)[ceil(len(waits) * 0.99) - 1] * 1000

    @property
    def slowest_ms(self) -> float:
        return max(self.seconds) * 1000

    def __str__(self) -> str:
        failed = f"{self.failed} of {len(self.seconds)} requests failed"
        return f"the victim's p99 {self.p99_ms:.0f} ms, slowest {self.slowest_ms:.0f} ms, {failed}"


@dataclass(frozen=True)
class Target:
    """A running service over a database of its own."""

    service: Service
    server: BreakablePostgresql | None  # None: SQLite
    attacker_key: str
    victim_key: str
    neighbour_key: str  # another one of the attacker's organization
    large_key: str  # of the organization with the largest payments
    session: str  # of staff that may view everything
    seconds: float  # that an attack lasts

    def log_in(self, username: str, password: str, *, address: str) -> int:
        """Send the form of a login like a proxy that got it from this address. Return the status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=REQUEST_SECONDS_MAX)
        form = {"csrfmiddlewaretoken": CSRF_TOKEN, "username": username, "password": password}
        headers = {"Cookie": f"csrftoken={CSRF_TOKEN}", "X-Forwarded-For": address}
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        with closing(connection):
            connection.request("POST", "/admin/login/", urlencode(form), headers)
            return connection.getresponse().status

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Return the status, the headers and the body of a response. In names of headers, `_` stands for `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=REQUEST_SECONDS_MAX)
        with closing(connection):
            connection.request("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()

    def get_as_staff(self, path: str) -> tuple[int, dict[str, str], bytes]:
        return self.get(path, Cookie=f"sessionid={self.session}")

    @property
    def log(self) -> str:
        assert self.service.log is not None
        return self.service.log.read_text()

    @contextmanager
    def victim(self, impacts: list[Impact], *, key: str | None = None) -> Iterator[None]:
        """Run the victim's clients during the block, and add their impact to the list."""
        load = Load(self.service.port, key or self.victim_key, pause_seconds=PAUSE_SECONDS)
        with load.running(CLIENTS):
            yield
        impacts.append(Impact([response.seconds for response in load.responses], load.failed))


@contextmanager
def running_target(directory: Path, options: Namespace) -> Iterator[Target]:
    """Create the data, and serve it until the block ends."""
    with ExitStack() as stack:
        server = None if options.database == "sqlite" else stack.enter_context(breakable_postgresql())
        url = f"sqlite:///{directory}/payments.sqlite3"
        if server is not None:
            server.execute("CREATE DATABASE payments")
            url = f"{server.url.rpartition('/')[0]}/payments"
        # Rate limits of its own, requests from several addresses, and sessions that this process creates.
        settings = {**USUAL_LIMITS, "RUNTIME_DIRECTORY": str(directory / "run"), "TRUST_PROXY": "true"}
        settings["SECRET_KEY"] = django_settings.SECRET_KEY
        service = Service(url, workers=WORKERS, log=directory / "log", settings=settings)
        service.migrate()
        for organization, count in ((ATTACKER, options.payments), (VICTIM, VICTIM_PAYMENTS)):
            service.import_records(lines_with_order(organization, count, order="1"))
        service.import_records(large_payments())
        attacker_key, victim_key, neighbour_key, large_key = (
            service.create_api_key(organization=organization, mode="live")
            for organization in (ATTACKER, VICTIM, ATTACKER, LARGE)
        )
        with connected_to(url):
            execute("VACUUM")
            execute("ANALYZE")
            User.objects.create_user("clerk", password=PASSWORD, is_staff=True)
            viewer = User.objects.create(username="viewer", is_staff=True, is_superuser=True)
            session = Staff.log_in(viewer).session
        stack.enter_context(service.serving())
        keys = (attacker_key, victim_key, neighbour_key, large_key)
        yield Target(service, server, *keys, session, options.seconds)


@contextmanager
def repeated(work: Callable[[], object], *, threads: int, pause_seconds: float) -> Iterator[None]:
    """Run `work` repeatedly in some threads until the block ends, and wait for the last runs."""
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            work()
            ended.wait(pause_seconds)

    with ThreadPoolExecutor(threads) as pool:
        for _ in range(threads):
            pool.submit(run)
        try:
            yield
        finally:
            ended.set()


def outcome(
    target: Target, attack: Callable[[], AbstractContextManager[object]], *, victim_key: str | None = None
) -> Outcome:
    """Compare the victim's requests during an attack with those before it."""
    impacts: list[Impact] = []
    with target.victim(impacts, key=victim_key):
        time.sleep(target.seconds / 2)
    with attack(), target.victim(impacts, key=victim_key):
        time.sleep(target.seconds)
    idle, attacked = impacts
    is_harmless = attacked.p99_ms <= P99_MS_MAX and not attacked.failed
    return Outcome(f"{attacked}; idle p99 {idle.p99_ms:.0f} ms", is_harmless)


def large_payments() -> Iterator[bytes]:
    """Yield the largest payments that an import takes, a page of them."""
    for number in range(LARGE_PAYMENTS):
        yield compact(
            record(
                id=f"pt_{LARGE}{number}",
                organizationId=f"{LARGE}",
                description=LARGE_TEXT,
                details={"first": LARGE_TEXT, "second": LARGE_TEXT, "third": LARGE_TEXT},
            )
        )
