"""Floods that could delay the requests of other clients."""

import itertools
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http import HTTPStatus

from benchmarks.attacks.flood import flood
from benchmarks.attacks.target import PASSWORD, Impact, Outcome, Target

IDLE_SECONDS = 3
SECONDS = 6
LOGIN = "/admin/login/"
LOGINS = 60
ATTACKER_ADDRESSES = ("192.0.2.1", "192.0.2.2", "192.0.2.3")
ATTACKER_PAUSE_SECONDS = 1
STAFF_ADDRESS = "198.51.100.1"
STAFF_PAUSE_SECONDS = 0.5
STAFF_REFUSED_MAX = 1
FILTER_CONNECTIONS = 40
SLOW_READERS = 50
RECEIVE_BUFFER_BYTES = 4096
FREEZE_SECONDS = 2

# The p99 of the victim's requests may be this many times its idle value, and at most this long.
IDLE_FACTOR_MAX = 5
P99_MS_MAX = 250
FROZEN_P99_MS_MAX = 3000

# No payment has this amount, so the whole list is read.
SLOWEST_FILTER = "/v2/payments?currency=EUR&amount%5Bgte%5D=999999"


def logins(target: Target) -> Outcome:
    """Log in without an account on many connections. Meanwhile, staff log in from another address."""
    numbers, staff = itertools.count(), Counter[int]()

    def log_in_without_account() -> None:
        number = next(numbers)
        form = {"username": f"unknown{number}", "password": "wrong"}
        target.request(LOGIN, form=form, address=ATTACKER_ADDRESSES[number % len(ATTACKER_ADDRESSES)])

    def log_in() -> None:
        form = {"username": "clerk", "password": PASSWORD}
        staff[target.request(LOGIN, form=form, address=STAFF_ADDRESS).status] += 1

    @contextmanager
    def attack() -> Iterator[None]:
        with (
            repeated(log_in_without_account, threads=LOGINS, pause_seconds=ATTACKER_PAUSE_SECONDS),
            repeated(log_in, threads=1, pause_seconds=STAFF_PAUSE_SECONDS),
        ):
            yield

    tried = f"{LOGINS} parallel logins from {len(ATTACKER_ADDRESSES)} addresses, each repeated every second"
    tried, happened, is_harmless = outcome(target, tried, attack)
    succeeded = staff[HTTPStatus.FOUND]
    happened += f"; {succeeded} of {staff.total()} logins by staff succeeded"
    return Outcome(tried, happened, is_harmless and succeeded >= staff.total() - STAFF_REFUSED_MAX > 0)


def slow_filters(target: Target) -> Outcome:
    """Request the slowest filter from many connections with one key."""

    statuses: Counter[str] = Counter()

    @contextmanager
    def attack() -> Iterator[None]:
        flooding = flood(target.service.port, SLOWEST_FILTER, key=target.attacker_key, connections=FILTER_CONNECTIONS)
        with flooding as answers:
            yield
        statuses.update(answers)

    tried, happened, is_harmless = outcome(target, f"a slow filter on {FILTER_CONNECTIONS} connections", attack)
    return Outcome(tried, f"{happened}; statuses {dict(statuses)}", is_harmless)


def slow_readers(target: Target) -> Outcome:
    """Request exports, and do not read the responses."""

    @contextmanager
    def attack() -> Iterator[None]:
        with ExitStack() as stack:
            for _ in range(SLOW_READERS):
                connection = stack.enter_context(socket.socket())
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
                connection.connect(("127.0.0.1", target.service.port))
                session = target.sessions["viewer"]
                request = (
                    f"GET /admin/payments/payment/export.csv HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: sessionid={session}"
                )
                connection.sendall(f"{request}\r\n\r\n".encode())
            yield

    return outcome(target, f"{SLOW_READERS} exports that are not read", attack)


def frozen_database(target: Target) -> Outcome:
    """Freeze the database server, as a full disk or a failing machine does."""
    if target.server is None:
        return Outcome("a frozen database server", "SQLite has no server", is_harmless=True)
    impacts: list[Impact] = []
    with target.victim(impacts):
        target.server.freeze()
        time.sleep(FREEZE_SECONDS)
        target.server.thaw()
        time.sleep(1)
    during = impacts[0]
    with target.victim(impacts):
        time.sleep(IDLE_SECONDS)
    after = impacts[1]
    happened = (
        f"the victim's slowest request took {during.slowest_ms:.0f} ms; a second later, p99 {after.p99_ms:.0f} ms and "
        f"{after.failed} failed"
    )
    is_harmless = during.slowest_ms < FROZEN_P99_MS_MAX and after.p99_ms < P99_MS_MAX and not after.failed
    return Outcome(f"a database server that freezes for {FREEZE_SECONDS} s", happened, is_harmless)


def outcome(target: Target, tried: str, attack: Callable[[], AbstractContextManager[None]]) -> Outcome:
    """Compare the victim's requests during an attack with those before it."""
    impacts: list[Impact] = []
    with target.victim(impacts):
        time.sleep(IDLE_SECONDS)
    with attack(), target.victim(impacts):
        time.sleep(SECONDS)
    idle, attacked = impacts
    happened = (
        f"the victim's p99 {attacked.p99_ms:.0f} ms, idle {idle.p99_ms:.0f} ms; slowest {attacked.slowest_ms:.0f} ms; "
        f"{attacked.failed} of {len(attacked.seconds)} failed"
    )
    is_harmless = attacked.p99_ms <= min(IDLE_FACTOR_MAX * idle.p99_ms, P99_MS_MAX) and not attacked.failed
    return Outcome(tried, happened, is_harmless)


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
