"""Limits over HTTP, for all workers together: exact, and bad keys harm no good one."""

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from payments import api_keys
from tests.support.load import Load
from tests.support.migrated import fresh_database
from tests.support.scale import report, times
from tests.support.service import Service

ALLOWED = 200
ASKED = 400
CLIENTS = 8
BAD_KEYS = times(300, long=10_000)
BAD_KEYS_ALLOWED = 100
BYTES_PER_MB = 2**20
GROWTH_MB_MAX = 5


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("limited")
    settings = {
        "RATE_LIMIT": f"{ALLOWED}/day",
        "BAD_KEY_LIMIT": f"{BAD_KEYS_ALLOWED}/hour",
        "RUNTIME_DIRECTORY": str(directory),
    }
    with (
        fresh_database(directory) as url,
        Service(url, settings=settings, workers=2, log=directory / "log").serving() as service,
    ):
        service.create_organization(1)
        yield service


def test_a_keys_limit_is_exact_for_all_workers_together(limited: Service) -> None:
    loads = [Load(limited.port, limited.create_api_key(organization=1, mode="live")) for _ in range(2)]

    with ThreadPoolExecutor(CLIENTS) as clients:
        asked = [clients.submit(load.get) for _ in range(ASKED) for load in loads]
        statuses = Counter(answer.result().status for answer in asked)

    assert statuses == {200: 2 * ALLOWED, 429: 2 * (ASKED - ALLOWED)}


def never_made(number: int) -> str:
    """Return a text that only the database knows to be no key."""
    return api_keys.new_key("live") if number % 2 else secrets.token_urlsafe(30)


def test_many_bad_keys_are_refused_and_good_ones_never_wait(limited: Service) -> None:
    good = Load(limited.port, limited.create_api_key(organization=1, mode="live"), path="/v2/payments?limit=1")
    assert {good.get().status for _ in range(ALLOWED // 4)} == {200}
    held = memory(limited)
    begun_at = time.monotonic()

    with ThreadPoolExecutor(CLIENTS) as clients:
        asked = [clients.submit(Load(limited.port, never_made(n)).get) for n in range(BAD_KEYS)]
        answers = [good.get() for _ in range(ALLOWED // 2)]
        statuses = Counter(answer.result().status for answer in asked)

    assert {answer.status for answer in answers} == {200}
    assert statuses == {401: BAD_KEYS_ALLOWED, 429: BAD_KEYS - BAD_KEYS_ALLOWED}
    assert memory(limited) - held < GROWTH_MB_MAX
    slowest = max(answer.seconds for answer in answers)
    report(f"{BAD_KEYS} bad keys in {time.monotonic() - begun_at:.0f} s: {dict(statuses)}")
    report(f"good keys meanwhile: 0 refused, the slowest answer after {slowest:.2f} s")
    report(f"memory: {held:.1f} MB before, {memory(limited):.1f} after")


def memory(service: Service) -> float:
    children = psutil.Process(service.server.pid).children(recursive=True)
    held: int = sum(child.memory_info().rss for child in children)
    return held / BYTES_PER_MB
