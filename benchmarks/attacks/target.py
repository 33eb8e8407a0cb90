"""The service that is attacked: its data, keys and users, and another client, the victim, which must not notice it."""

import http.client
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from math import ceil
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from django.contrib.auth.models import Permission, User

from tests.support.admin_site import Staff
from tests.support.connecting import connected_to
from tests.support.lines import lines_with_order
from tests.support.load import Load
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.service import Service
from tests.support.sql import execute

ATTACKER, VICTIM = 1, 2  # organizations
ATTACKER_PAYMENTS = 60_000
OFTEN_PAYMENTS, RARE_PAYMENTS = 5_000, 5
WORKERS = 2

VIEWS = ("view_organization", "view_apikey", "view_payment")
CLIENTS = 2
PAUSE_SECONDS = 0.02
SECONDS_MAX = 60
PASSWORD = "correct-horse-battery"  # noqa: S105  for the tests alone
CSRF_TOKEN = "a" * 32


class Outcome(NamedTuple):
    """The result of an attack."""

    tried: str
    happened: str
    is_harmless: bool


class Answer(NamedTuple):
    """The response to a request of the attacker."""

    status: int
    headers: Mapping[str, str]
    body: str


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


@dataclass
class Target:
    """A running service over a database of its own."""

    service: Service
    server: BreakablePostgresql | None  # None: SQLite
    attacker_key: str
    victim_key: str
    sessions: dict[str, str] = field(default_factory=dict)  # the session of each user, by name

    def request(
        self,
        path: str,
        *,
        user: str | None = None,
        key: str | None = None,
        form: Mapping[str, str] | None = None,
        address: str = "127.0.0.1",
    ) -> Answer:
        """Send a GET, or a POST with a form, like a proxy that got the request from this address."""
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=SECONDS_MAX)
        cookies = f"csrftoken={CSRF_TOKEN}" + (f"; sessionid={self.sessions[user]}" if user else "")
        headers = {"Cookie": cookies, "X-Forwarded-For": address, **({"Authorization": f"Bearer {key}"} if key else {})}
        body = None
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode({"csrfmiddlewaretoken": CSRF_TOKEN, **form})
        try:
            connection.request("GET" if form is None else "POST", path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read().decode(errors="replace"))
        finally:
            connection.close()

    @contextmanager
    def victim(self, impacts: list[Impact]) -> Iterator[None]:
        """Run the victim's clients during the block, and add their impact to the list."""
        load = Load(self.service.port, self.victim_key, pause_seconds=PAUSE_SECONDS)
        with load.running(CLIENTS):
            yield
        seconds = [response.seconds for response in load.responses]
        impacts.append(Impact(seconds, load.failed))


@contextmanager
def running_target(directory: Path, *, is_sqlite: bool) -> Iterator[Target]:
    """Create the data, and serve it until the block ends."""
    with ExitStack() as stack:
        server = None if is_sqlite else stack.enter_context(breakable_postgresql())
        if server is None:
            url = f"sqlite:///{directory}/payments.sqlite3"
        else:
            server.execute("CREATE DATABASE payments")
            url = f"{server.url.rpartition('/')[0]}/payments"
        settings = {
            "BAD_KEY_LIMIT": "",
            "RUNTIME_DIRECTORY": str(directory / "run"),  # rate limits of its own
            "TRUST_PROXY": "true",  # so that requests can come from several addresses
        }
        service = Service(url, workers=WORKERS, log=directory / "log", settings=settings)
        service.migrate()
        load_payments(service)
        with connected_to(url):
            execute("VACUUM")
            execute("ANALYZE")
        attacker_key, victim_key = (
            service.create_api_key(organization=organization, mode="live") for organization in (ATTACKER, VICTIM)
        )
        target = Target(service, server, attacker_key, victim_key)
        create_users(target)
        stack.enter_context(service.serving())
        assert all(
            target.request("/admin/payments/organization/", user=user).status == HTTPStatus.OK
            for user in target.sessions
        )
        yield target


def load_payments(service: Service) -> None:
    """Load the attacker's payments, and the victim's, which have two metadata pairs, one often and one rarely."""
    groups = [
        (ATTACKER, "own", ATTACKER_PAYMENTS),
        (VICTIM, "often", OFTEN_PAYMENTS),
        (VICTIM, "rarely", RARE_PAYMENTS),
    ]
    for organization, order, count in groups:
        service.import_records(lines_with_order(organization, count, order=order))


def create_users(target: Target) -> None:
    """Create `viewer`, who may view everything but change nothing, and `root`, and log both in. Create `clerk`."""
    with connected_to(target.service.database_url):
        viewer = User.objects.create(username="viewer", is_staff=True)
        viewer.user_permissions.set(Permission.objects.filter(codename__in=VIEWS))
        root = User.objects.create(username="root", is_staff=True, is_superuser=True)
        User.objects.create_user("clerk", password=PASSWORD, is_staff=True)
        for user in (viewer, root):
            target.sessions[user.username] = Staff.log_in(user).session
