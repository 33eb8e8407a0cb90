"""Attacks on a service with its own database: `benchmarks/attack`. A line for each says what happened to a victim.

The victim is another client, with two connections and its own organization. It must not notice the attack.
"""

import argparse
import http.client
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "payments_site.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402

from tests.support.admin_site import Staff  # noqa: E402
from tests.support.connecting import connected_to  # noqa: E402
from tests.support.lines import lines_with_order  # noqa: E402
from tests.support.load import Load  # noqa: E402
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql  # noqa: E402
from tests.support.service import Service  # noqa: E402
from tests.support.sql import execute  # noqa: E402

ATTACKER, VICTIM = 1, 2  # organizations
VICTIM_PAYMENTS = 5_000
WORKERS = 2
CLIENTS = 2
PAUSE_SECONDS = 0.02
REQUEST_SECONDS_MAX = 60
FREEZE_SECONDS = 2

# How long the p99 of the victim's requests may be.
P99_MS_MAX = 250
FROZEN_MS_MAX = 3000

PASSWORD = "correct-horse-battery"  # noqa: S105  for the attack alone
CSRF_TOKEN = "a" * 32
LOGINS = 60
ATTACKER_ADDRESSES = ("192.0.2.1", "192.0.2.2", "192.0.2.3")
ATTACKER_PAUSE_SECONDS = 1
STAFF_ADDRESS = "198.51.100.1"
STAFF_PAUSE_SECONDS = 0.5
STAFF_SUCCEEDED_MIN = 0.5  # of their logins, because the attacker's logins use the share of pages too

SLOWEST_FILTER = "/v2/payments?currency=EUR&amount%5Bgte%5D=999999"  # no payment matches, so the whole list is read
FILTER_CONNECTIONS = 40
SLOW_READERS = 50
RECEIVE_BUFFER_BYTES = 4096


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

    @contextmanager
    def victim(self, impacts: list[Impact]) -> Iterator[None]:
        """Run the victim's clients during the block, and add their impact to the list."""
        load = Load(self.service.port, self.victim_key, pause_seconds=PAUSE_SECONDS)
        with load.running(CLIENTS):
            yield
        impacts.append(Impact([response.seconds for response in load.responses], load.failed))


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/attack", description="Attack a service that this command starts.")
    parser.add_argument("database", nargs="?", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--only", action="append", choices=ATTACKS, help="run only this attack; may be repeated")
    parser.add_argument("--payments", type=int, default=60_000, help="number of payments of the attacker")
    parser.add_argument("--seconds", type=float, default=6, help="duration of an attack")
    options = parser.parse_args()
    passed = True
    with tempfile.TemporaryDirectory(prefix="payments-attack-") as directory:
        print("Loading payments", file=sys.stderr)
        with running_target(Path(directory), options) as target:
            for name in options.only or ATTACKS:
                happened, is_harmless = ATTACKS[name](target)
                passed = passed and is_harmless
                print(f"{'pass' if is_harmless else 'FAIL'}  {name}: {happened}", flush=True)
    sys.exit(0 if passed else 1)


@contextmanager
def running_target(directory: Path, options: argparse.Namespace) -> Iterator[Target]:
    """Create the data, and serve it until the block ends."""
    with ExitStack() as stack:
        server = None if options.database == "sqlite" else stack.enter_context(breakable_postgresql())
        url = f"sqlite:///{directory}/payments.sqlite3"
        if server is not None:
            server.execute("CREATE DATABASE payments")
            url = f"{server.url.rpartition('/')[0]}/payments"
        # Rate limits of its own, and requests from several addresses.
        settings = {"RUNTIME_DIRECTORY": str(directory / "run"), "TRUST_PROXY": "true"}
        service = Service(url, workers=WORKERS, log=directory / "log", settings=settings)
        service.migrate()
        for organization, count in ((ATTACKER, options.payments), (VICTIM, VICTIM_PAYMENTS)):
            service.import_records(lines_with_order(organization, count, order="1"))
        attacker_key, victim_key = (
            service.create_api_key(organization=organization, mode="live") for organization in (ATTACKER, VICTIM)
        )
        with connected_to(url):
            execute("VACUUM")
            execute("ANALYZE")
            User.objects.create_user("clerk", password=PASSWORD, is_staff=True)
            viewer = User.objects.create(username="viewer", is_staff=True, is_superuser=True)
            session = Staff.log_in(viewer).session
        stack.enter_context(service.serving())
        yield Target(service, server, attacker_key, victim_key, session, options.seconds)


def logins(target: Target) -> Outcome:
    """Log in without an account on many connections. Meanwhile, staff log in from another address."""
    numbers, staff = itertools.count(), Counter[int]()

    def log_in_without_account() -> None:
        number = next(numbers)
        target.log_in(f"unknown{number}", "wrong", address=ATTACKER_ADDRESSES[number % len(ATTACKER_ADDRESSES)])

    def log_in() -> None:
        staff[target.log_in("clerk", PASSWORD, address=STAFF_ADDRESS)] += 1

    @contextmanager
    def attack() -> Iterator[None]:
        with (
            repeated(log_in_without_account, threads=LOGINS, pause_seconds=ATTACKER_PAUSE_SECONDS),
            repeated(log_in, threads=1, pause_seconds=STAFF_PAUSE_SECONDS),
        ):
            yield

    happened, is_harmless = outcome(target, attack)
    succeeded = staff[HTTPStatus.FOUND]
    is_harmless = is_harmless and succeeded >= staff.total() * STAFF_SUCCEEDED_MIN > 0
    return Outcome(f"{happened}; {succeeded} of {staff.total()} logins by staff succeeded", is_harmless)


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


def slow_filters(target: Target) -> Outcome:
    """Request the slowest filter on many connections with one key."""
    lines: list[str] = []

    @contextmanager
    def attack() -> Iterator[None]:
        command = ["wrk", "--threads", "1", "--connections", str(FILTER_CONNECTIONS), "--duration", "1h"]
        command += ["--timeout", "60s", "--header", f"Authorization: Bearer {target.attacker_key}"]
        flood = subprocess.Popen(  # noqa: S603
            [*command, f"{target.service.base_url}{SLOWEST_FILTER}"], stdout=subprocess.PIPE, text=True
        )
        yield
        flood.send_signal(signal.SIGINT)
        lines.extend(flood.communicate()[0].splitlines())

    happened, is_harmless = outcome(target, attack)
    responses = ", ".join(line.strip() for line in lines if "requests in" in line or "Non-2xx" in line)
    return Outcome(f"{happened}; the attacker's {responses}", is_harmless)


def slow_readers(target: Target) -> Outcome:
    """Request exports, and do not read the responses."""
    lines = (
        "GET /admin/payments/payment/export.csv HTTP/1.1",
        "Host: 127.0.0.1",
        f"Cookie: sessionid={target.session}",
    )

    @contextmanager
    def attack() -> Iterator[None]:
        with ExitStack() as stack:
            for _ in range(SLOW_READERS):
                connection = stack.enter_context(socket.socket())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
                connection.connect(("127.0.0.1", target.service.port))
                connection.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
            yield

    return outcome(target, attack)


def frozen_database(target: Target) -> Outcome:
    """Freeze the database server, as a full disk or a failing machine does."""
    if target.server is None:
        return Outcome("SQLite has no server", is_harmless=True)
    impacts: list[Impact] = []
    with target.victim(impacts):
        with target.server.frozen():
            time.sleep(FREEZE_SECONDS)
        time.sleep(1)
    with target.victim(impacts):
        time.sleep(target.seconds / 2)
    during, after = impacts
    is_harmless = during.slowest_ms < FROZEN_MS_MAX and after.p99_ms < P99_MS_MAX and not after.failed
    return Outcome(f"for {FREEZE_SECONDS} s: {during}; a second later: {after}", is_harmless)


def outcome(target: Target, attack: Callable[[], AbstractContextManager[None]]) -> Outcome:
    """Compare the victim's requests during an attack with those before it."""
    impacts: list[Impact] = []
    with target.victim(impacts):
        time.sleep(target.seconds / 2)
    with attack(), target.victim(impacts):
        time.sleep(target.seconds)
    idle, attacked = impacts
    is_harmless = attacked.p99_ms <= P99_MS_MAX and not attacked.failed
    return Outcome(f"{attacked}; idle p99 {idle.p99_ms:.0f} ms", is_harmless)


ATTACKS: Mapping[str, Callable[[Target], Outcome]] = {
    "logins": logins,
    "slow filters": slow_filters,
    "slow readers": slow_readers,
    "frozen database": frozen_database,
}


if __name__ == "__main__":
    main()
