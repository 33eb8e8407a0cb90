"""The complete use case: load payments, create a key, and follow the links of the list over HTTP.

The tests use the commands, the server and the database as they are deployed.
"""

import itertools
import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from payments.demo import SHOPS, demo_record
from payments.models import Mode
from payments.record import Record, encode
from tests.support.factories import NOON
from tests.support.scale import times
from tests.support.service import Service, Walker, workers
from tests.support.tools import needs_linux

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("service")]

COUNT = times(2_000, long=20_000)
TIED = times(700, long=7_000)
ON_ONE_INSTANT = times(200, long=2_000)
LIMITS = (1, 7, 20, 249, 250)
PAGES_MAX = times(300, long=COUNT)
SHOP = SHOPS[0]


def records() -> Iterator[Record]:
    """Yield live payments of one organization. The oldest share one instant, some share an instant in small groups."""
    chance = random.Random(COUNT)  # noqa: S311
    instants = itertools.chain(
        itertools.repeat(NOON - timedelta(days=30), ON_ONE_INSTANT),
        (NOON - timedelta(minutes=number // 5) for number in range(5, TIED - ON_ONE_INSTANT + 5)),
        (NOON - timedelta(seconds=60 * number + 1, milliseconds=number) for number in range(COUNT - TIED)),
    )
    for instant in instants:
        yield demo_record(chance, SHOP, Mode.LIVE, instant, recurring=False)


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    """Return the payments as an export writes them, newest first."""
    ordered = sorted(records(), key=lambda record: (record.created_at, record.id.encode()), reverse=True)
    return [encode(record) for record in ordered]


@pytest.fixture(scope="module")
def key(service: Service, lines: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Load the payments in random order, and test payments. Return a key for live payments."""
    file = tmp_path_factory.mktemp("files") / "payments.jsonl"
    shuffled = random.Random(1).sample(lines, COUNT)  # noqa: S311
    file.write_bytes(b"".join(line + b"\n" for line in shuffled))
    service.create_organization(SHOP.id, name=SHOP.name)
    service.manage("import_payments", str(file))
    test_payments = (demo_record(random.Random(n), SHOP, Mode.TEST, NOON, recurring=True) for n in range(100))  # noqa: S311
    service.import_records(map(encode, test_payments))
    return service.create_api_key(organization=SHOP.id, mode="live")


def payments(pages: list[Any]) -> list[Any]:
    return [payment for page in pages for payment in page["_embedded"]["payments"]]


def ids(pages: list[Any]) -> list[str]:
    return [payment["id"] for payment in payments(pages)]


@pytest.mark.parametrize("limit", LIMITS)
def test_walk_returns_every_payment_once_in_both_directions(
    service: Service, key: str, lines: list[bytes], limit: int
) -> None:
    expected = [msgspec.json.decode(line)["id"] for line in lines][-limit * PAGES_MAX :]
    first, last_page_start = expected[0], expected[(len(expected) - 1) // limit * limit]
    page_count = -(-len(expected) // limit)

    def walk(relation: str, start: str) -> list[Any]:
        with Walker(service.base_url, key) as walker:
            pages = walker.walk(relation, f"{service.base_url}/v2/payments?limit={limit}&from={start}")
            return list(itertools.islice(pages, page_count))

    with ThreadPoolExecutor() as pool:
        walks = [pool.submit(walk, "next", first), pool.submit(walk, "previous", last_page_start)]
        forward, back = (done.result() for done in walks)

    assert ids(forward) == expected
    assert [page["_embedded"] for page in reversed(back)] == [page["_embedded"] for page in forward]
    assert "next" not in forward[-1]["_links"]
    assert ("previous" in back[-1]["_links"]) == (len(expected) < COUNT)


def test_previous_links_lead_to_the_newest_payment(service: Service, key: str, lines: list[bytes]) -> None:
    expected = [msgspec.json.decode(line)["id"] for line in lines]

    for start in random.Random(2).sample(range(COUNT), 5):  # noqa: S311
        href = f"{service.base_url}/v2/payments?limit=250&from={expected[start]}"
        with Walker(service.base_url, key) as walker:
            back = list(walker.walk("previous", href))

        assert back[-1]["_embedded"]["payments"][0]["id"] == expected[0]
        assert set(ids(back)) >= set(expected[:start])


def test_api_returns_the_imported_records_and_their_links(service: Service, key: str, lines: list[bytes]) -> None:
    with Walker(service.base_url, key) as walker:
        pages = list(walker.walk("next", f"{service.base_url}/v2/payments?limit=250"))

    without_links = [
        {name: value for name, value in payment.items() if name != "_links"} for payment in payments(pages)
    ]

    assert [msgspec.json.encode(payment) for payment in without_links] == lines


def test_export_after_import_of_an_export_is_identical(service: Service, key: str, lines: list[bytes]) -> None:
    first = service.manage("export_payments", "--organization", str(SHOP.id), "--mode", "live")

    done = service.run("import_payments", "-", input=first)
    second = service.exported(organization=SHOP.id, mode="live")

    assert first.encode() == b"".join(line + b"\n" for line in lines)
    assert done.stderr == f"{COUNT} records read: 0 payments created, 0 changed, {COUNT} unchanged, 0 refused.\n"
    assert second == first


@pytest.mark.once
def test_closed_pipe_ends_an_export_silently(service: Service, key: str) -> None:
    exporting = service.popen("export_payments")
    assert exporting.stdout is not None

    first = exporting.stdout.readline()
    exporting.stdout.close()
    _, messages = exporting.communicate()

    assert first.startswith(b'{"id":"pt_')
    assert (exporting.returncode, messages) == (1, b"")


@pytest.mark.once
def test_saved_pages_can_be_imported(service: Service, key: str, tmp_path: Path) -> None:
    file = tmp_path / "pages.json"
    with Walker(service.base_url, key) as walker:
        pages = itertools.islice(walker.walk("next", f"{service.base_url}/v2/payments?limit=250"), 4)
        file.write_bytes(b"\n".join(map(msgspec.json.encode, pages)))

    done = service.run("import_payments", str(file))

    assert done.stderr == "1000 records read: 0 payments created, 0 changed, 1000 unchanged, 0 refused.\n"


def test_requests_are_served_during_an_import(service: Service, key: str, lines: list[bytes]) -> None:
    """SQLite allows one writer, for which readers do not wait in WAL mode."""
    with ThreadPoolExecutor() as pool, Walker(service.base_url, key) as walker:
        changed = b"\n".join(lines).replace(b'"description":"', b'"description":"changed ').decode()
        importing = pool.submit(service.run, "import_payments", "-", input=changed)
        served = 0
        while not importing.done():
            assert walker.get(f"{service.base_url}/v2/payments?limit=20")["count"] == 20
            served += 1

        assert importing.result().returncode == 0
    restored = service.import_records(lines)
    assert served > 10
    assert (restored.read, restored.written, restored.refused) == (COUNT, COUNT, 0)


def test_revoked_key_is_refused_by_every_worker(service: Service, key: str) -> None:
    revoked = service.create_api_key(organization=SHOP.id, mode="live")
    href = f"{service.base_url}/v2/payments?limit=1"
    with ExitStack() as stack:
        walkers = [stack.enter_context(Walker(service.base_url, revoked)) for _ in range(6)]
        for walker in walkers:
            walker.get(href)

        service.revoke_api_key(revoked)

        for walker in walkers:
            with pytest.raises(AssertionError, match="Unauthorized"):
                walker.get(href)


@needs_linux
def test_crash_of_a_worker_writes_no_memory_to_disk(service: Service) -> None:
    limits = [Path(f"/proc/{worker.pid}/limits").read_text() for worker in workers(service)]

    assert len(limits) == service.workers
    assert all(re.search(r"Max core file size +0 +0 ", text) for text in limits)
