"""Floods that could delay the requests of other clients."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from benchmarks.attacks.target import Impact, Outcome, Target
from tests.support.load import Load

IDLE_SECONDS = 3
SECONDS = 6
LOGINS = 60
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
    """Log in without an account from many connections at once."""

    @contextmanager
    def attack() -> Iterator[None]:
        form = {"username": "unknown", "password": "wrong"}
        with in_threads(LOGINS, lambda: target.request("/admin/login/", form=form)):
            yield

    return outcome(target, f"{LOGINS} parallel logins", attack)


def slow_filters(target: Target) -> Outcome:
    """Request the slowest filter from many connections with one key."""

    @contextmanager
    def attack() -> Iterator[None]:
        load = Load(target.service.port, target.attacker_key, SLOWEST_FILTER, pause_seconds=0)
        with load.running(FILTER_CONNECTIONS):
            yield

    return outcome(target, f"a slow filter on {FILTER_CONNECTIONS} connections", attack)


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
def in_threads(count: int, work: Callable[[], object]) -> Iterator[None]:
    """Run `work` once in each of many threads, and wait for them at the end of the block."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()
