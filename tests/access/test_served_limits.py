"""The rate limit over HTTP is exact for all workers together, and invalid keys do not affect valid ones."""

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from payments.models import identifiers
from tests.support.load import Load
from tests.support.migrated import fresh_database
from tests.support.scale import report, times
from tests.support.service import Service

pytestmark = [pytest.mark.once, pytest.mark.processes]

ALLOWED = 200
REQUESTS = 400
CLIENTS = 8
INVALID_KEYS = times(300, long=10_000)
BYTES_PER_MB = 2**20
GROWTH_MB_MAX = 5


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("limited")
    settings = {
        "RATE_LIMIT": f"{ALLOWED}/day",
        "RUNTIME_DIRECTORY": str(directory),
    }
    with (
        fresh_database(directory) as url,
        Service(url, settings=settings, workers=2, log=directory / "log").serving() as service,
    ):
        service.create_organization(1)
        yield service


def test_limit_of_a_key_is_exact_for_all_workers(limited: Service) -> None:
    loads = [Load(limited.port, limited.create_api_key(organization=1, mode="live")) for _ in range(2)]

    with ThreadPoolExecutor(CLIENTS) as clients:
        responses = [clients.submit(load.get) for _ in range(REQUESTS) for load in loads]
        statuses = Counter(response.result().status for response in responses)

    assert statuses == {200: 2 * ALLOWED, 429: 2 * (REQUESTS - ALLOWED)}


def invalid_key(number: int) -> str:
    """Return a key that does not exist. Every second one has a valid checksum, so that the database is queried."""
    return identifiers.new_key("live") if number % 2 else secrets.token_urlsafe(30)


@pytest.mark.extended
def test_many_invalid_keys_do_not_affect_valid_keys(limited: Service) -> None:
    valid = Load(limited.port, limited.create_api_key(organization=1, mode="live"), path="/v2/payments?limit=1")
    assert {valid.get().status for _ in range(ALLOWED // 4)} == {200}

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(lambda n: Load(limited.port, invalid_key(n)).get(), range(10 * CLIENTS)))  # use all threads
        before = memory(limited)
        started_at = time.monotonic()
        responses = [clients.submit(Load(limited.port, invalid_key(n)).get) for n in range(INVALID_KEYS)]
        valid_responses = [valid.get() for _ in range(ALLOWED // 2)]
        statuses = Counter(response.result().status for response in responses)

    assert {response.status for response in valid_responses} == {200}
    assert statuses == {401: INVALID_KEYS}
    assert memory(limited) - before < GROWTH_MB_MAX
    slowest = max(response.seconds for response in valid_responses)
    report(f"{INVALID_KEYS} invalid keys in {time.monotonic() - started_at:.0f} s: {dict(statuses)}")
    report(f"valid keys meanwhile: 0 refused, slowest response after {slowest:.2f} s")
    report(f"memory: {before:.1f} MB before, {memory(limited):.1f} after")


def memory(service: Service) -> float:
    children = psutil.Process(service.server.pid).children(recursive=True)
    size: int = sum(child.memory_info().rss for child in children)
    return size / BYTES_PER_MB
