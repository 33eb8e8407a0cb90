"""Attacks by load. Each returns what happened to the victim, which sends requests at the same time."""

import itertools
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path

from benchmarks.attack_target import P99_MS_MAX, PASSWORD, Impact, Outcome, Target, outcome, repeated
from tests.support.service import workers

FREEZE_SECONDS = 2
FROZEN_MS_MAX = 3000

LOGINS = 60
ATTACKER_ADDRESSES = ("192.0.2.1", "192.0.2.2", "192.0.2.3")
ATTACKER_PAUSE_SECONDS = 1
STAFF_ADDRESS = "198.51.100.1"
STAFF_PAUSE_SECONDS = 0.5
STAFF_SUCCEEDED_MIN = 0.5  # of their logins, because the attacker's logins use the share of pages too
STAFF_PAGES_MIN = 0.9
PUBLIC_LOGIN_PAUSE_SECONDS = 3  # a login takes half a second of processor time

SLOWEST_FILTER = "/v2/payments?currency=EUR&amount%5Bgte%5D=999999"  # no payment matches, so the whole list is read
CONNECTIONS = 40
SLOW_READERS = 50
RECEIVE_BUFFER_BYTES = 4096
PARAMETERS_BYTES = 60_000

LARGE_READERS = 8
WORKER_MB_MAX = 400
MB = 2**20

SPELLINGS = Path(__file__).with_name("spellings.lua")


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
def flood(
    target: Target, path: str, *arguments: str, connections: int = CONNECTIONS, script: tuple[Path, str] | None = None
) -> Iterator[list[str]]:
    """Send requests for a path with wrk until the block ends. The list then has what wrk says about the responses."""
    lines: list[str] = []
    command = ["wrk", "--threads", "1", "--connections", f"{connections}", "--duration", "1h", "--timeout", "60s"]
    options = ["--script", f"{script[0]}", *arguments] if script else arguments
    rest = ["--", script[1]] if script else []
    with subprocess.Popen(  # noqa: S603
        [*command, *options, f"{target.service.base_url}{path}", *rest], stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            yield lines
        finally:
            running.send_signal(signal.SIGINT)
            output = running.communicate()[0].splitlines()
    lines += [line.strip() for line in output if "requests in" in line or "Non-2xx" in line]


def with_key(key: str) -> tuple[str, str]:
    return "--header", f"Authorization: Bearer {key}"


def slow_filters(target: Target) -> Outcome:
    """Request the slowest filter on many connections with one key."""
    return flooded(target, SLOWEST_FILTER, *with_key(target.attacker_key))


def feed(target: Target) -> Outcome:
    """Read the change feed on many connections. The victim has another key of the same organization."""
    key = with_key(target.attacker_key)
    return flooded(target, "/v2/payments/changes?limit=250", *key, victim_key=target.neighbour_key)


def large_limit(target: Target) -> Outcome:
    """Request pages of 250 payments on many connections with one key."""
    return flooded(target, "/v2/payments?limit=250", *with_key(target.attacker_key))


def spellings(target: Target) -> Outcome:
    """The same, but send the key in sixty spellings."""
    return flooded(target, "/v2/payments?limit=250", script=(SPELLINGS, target.attacker_key))


def parameters(target: Target) -> Outcome:
    """Send long query strings without a key."""
    parameter = "status=open&"
    return flooded(target, f"/v2/payments?{parameter * (PARAMETERS_BYTES // len(parameter))}")


def flooded(
    target: Target,
    path: str,
    *arguments: str,
    victim_key: str | None = None,
    script: tuple[Path, str] | None = None,
) -> Outcome:
    """Return the outcome for the victim while the attacker sends requests for a path on many connections."""
    lines: list[str] = []

    @contextmanager
    def attack() -> Iterator[None]:
        with flood(target, path, *arguments, script=script) as responses:
            yield
        lines.extend(responses)

    happened, is_harmless = outcome(target, attack, victim_key=victim_key)
    return Outcome(f"{happened}; the attacker's {', '.join(lines)}", is_harmless)


def public_pages(path: str, *arguments: str) -> Callable[[Target], Outcome]:
    """Return an attack that requests a public page on many connections. Meanwhile, staff view their list and log in."""

    def attack(target: Target) -> Outcome:
        pages, logins, numbers = Counter[int](), Counter[int](), itertools.count(1)

        def view_list() -> None:
            pages[target.get_as_staff("/admin/payments/payment/")[0]] += 1

        def log_in() -> None:
            address = f"203.0.113.{next(numbers)}"  # the limit for logins is not the subject
            logins[target.log_in("clerk", PASSWORD, address=address)] += 1

        @contextmanager
        def flooding() -> Iterator[None]:
            with (
                flood(target, path, *arguments),
                repeated(view_list, threads=1, pause_seconds=STAFF_PAUSE_SECONDS / 5),
                repeated(log_in, threads=1, pause_seconds=PUBLIC_LOGIN_PAUSE_SECONDS),
            ):
                yield

        happened, is_harmless = outcome(target, flooding)
        is_harmless = is_harmless and pages[HTTPStatus.OK] >= pages.total() * STAFF_PAGES_MIN > 0
        logged_in = f"{logins[HTTPStatus.FOUND]} of {logins.total()} logins"
        return Outcome(
            f"{happened}; {pages[HTTPStatus.OK]} of {pages.total()} pages and {logged_in} by staff succeeded",
            is_harmless,
        )

    return attack


def large_pages(target: Target) -> Outcome:
    """Read the largest page on some connections, and measure the memory of the workers."""
    largest_mb = 0.0

    def measure() -> None:
        nonlocal largest_mb
        largest_mb = max(largest_mb, *(worker.memory_info().rss / MB for worker in workers(target.service)))

    @contextmanager
    def attack() -> Iterator[None]:
        with (
            flood(target, "/v2/payments?limit=250", *with_key(target.large_key), connections=LARGE_READERS) as lines,
            repeated(measure, threads=1, pause_seconds=0.05),
        ):
            yield
        responses.extend(lines)

    responses: list[str] = []
    happened, is_harmless = outcome(target, attack)
    happened = f"{happened}; the largest worker had {largest_mb:.0f} MB; the attacker's {', '.join(responses)}"
    return Outcome(happened, is_harmless and largest_mb < WORKER_MB_MAX)


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


ATTACKS: Mapping[str, Callable[[Target], Outcome]] = {
    "logins": logins,
    "slow filters": slow_filters,
    "feed": feed,
    "large limit": large_limit,
    "spellings of a key": spellings,
    "parameters without a key": parameters,
    "documentation": public_pages("/docs/reference/"),
    "login page": public_pages("/admin/login/"),
    "unknown pages": public_pages("/nonsense"),
    "forged sessions": public_pages("/admin/", "--header", f"Cookie: sessionid={'x' * 32}"),
    "unknown files": public_pages("/static/nonsense"),
    "large pages": large_pages,
    "slow readers": slow_readers,
    "frozen database": frozen_database,
}
