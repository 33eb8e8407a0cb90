"""Two imports of the same payments in opposite order.

Within a batch, one import waits for the other. With several batches, PostgreSQL ends one of them, and Citus does too.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest
from django.core.management import call_command
from django.db import OperationalError, transaction
from psycopg.errors import DeadlockDetected
from pytest_django import Settings

from payments.models import Payment
from payments.runtime.hooks import Hook, Progress
from tests.support.commands import manage
from tests.support.connecting import connected_to
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.hooks import registered
from tests.support.lines import line, store
from tests.support.migrated import fresh_database
from tests.support.sql import execute, fetch_value
from tests.support.threads import call_while_held, in_thread, wait_until_blocked
from tests.support.waiting import SECONDS_MAX

pytestmark = pytest.mark.only("postgresql", "citus")

BATCH_RECORDS = 10


class FirstBatches(Hook):
    """Lets each of two imports continue after its first batch only when the other one has written its first one too."""

    def __init__(self) -> None:
        self.barrier = Barrier(2)
        self.waits = [1, 2]

    def import_progressed(self, progress: Progress) -> None:
        if self.waits:
            self.waits.pop()
            self.barrier.wait()


def descriptions() -> dict[str, str]:
    return dict(Payment.objects.exclude(id__startswith="pt_between").values_list("id", "description"))


def in_two_batches(lines: list[bytes]) -> list[bytes]:
    """Return two lines, and others between them, so that the import writes the second one later."""
    first, second = lines
    unique = sha256(first).hexdigest()[:9]
    return [first, *(line(id=f"pt_between{unique}{number}") for number in range(BATCH_RECORDS)), second]


@pytest.mark.parametrize("organizations", [("1", "1"), ("1", "2")], ids=["one organization", "two organizations"])
def test_one_of_two_imports_in_opposite_order_fails_and_can_be_repeated(
    tmp_path: Path, settings: Settings, organizations: Sequence[str]
) -> None:
    settings.PAYMENTS_IMPORT_BATCH_RECORDS = BATCH_RECORDS

    def lines(description: str) -> list[bytes]:
        return [
            line(id=f"pt_{number}", organizationId=organization, description=description)
            for number, organization in enumerate(organizations)
        ]

    def store_in_thread(url: str, records: list[bytes]) -> int | OperationalError:
        with connected_to(url):
            try:
                return store(records).written
            except OperationalError as error:
                return error

    with fresh_database(tmp_path) as url, connected_to(url), ThreadPoolExecutor() as pool:
        store(lines("stored"))
        with registered(FirstBatches()):
            records = [in_two_batches(lines("first")), in_two_batches(lines("second")[::-1])]
            results = list(pool.map(store_in_thread, [url] * 2, records))
        [error] = [result for result in results if isinstance(result, OperationalError)]
        assert isinstance(error.__cause__, DeadlockDetected)
        winner = "second" if results[0] is error else "first"
        assert descriptions() == {"pt_0": winner, "pt_1": winner}
        assert store(lines("repeated")).written == 2


@pytest.mark.only("postgresql")
@pytest.mark.parametrize("are_new", [True, False], ids=["new payments", "stored payments"])
def test_imports_in_opposite_order_within_a_batch_both_succeed(tmp_path: Path, are_new: bool) -> None:
    """Another transaction holds the second of three payments, so that each import has written its first one."""

    def lines(description: str) -> list[bytes]:
        return [line(id=f"pt_{number}", description=description) for number in range(3)]

    def store_in_thread(records: list[bytes]) -> int:
        with connected_to(url):
            return store(records).written

    def hold() -> None:
        if are_new:
            PaymentFactory.create(id="pt_1", organization=organization)
        else:
            Payment.objects.filter(id="pt_1").update(description="held")

    with fresh_database(tmp_path) as url, connected_to(url):
        organization = OrganizationFactory.create(id=1)
        if not are_new:
            store(lines("stored"))
        imports = (lines("first"), lines("second")[::-1])

        changed = call_while_held(hold, *(partial(store_in_thread, records) for records in imports))

        assert changed == [3, 3]
        assert len(set(descriptions().values())) == 1


class Holder(Hook):
    """Closes a cycle after an import's first batch: a transaction holds its second payment, and wants its first.

    The transaction never looks for deadlocks, so PostgreSQL ends the import.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.threads: list[Thread] = []

    def import_progressed(self, progress: Progress) -> None:
        if not self.threads and progress.read == BATCH_RECORDS:
            is_holding = Event()
            self.threads.append(in_thread(partial(self.hold, is_holding)))
            self.threads[-1].start()
            assert is_holding.wait(SECONDS_MAX)
            wait_until_blocked(self.threads[-1])

    def hold(self, is_holding: Event) -> None:
        with connected_to(self.url), transaction.atomic():
            execute("SET LOCAL deadlock_timeout = '1h'")
            for payment_id in ("pt_1", "pt_0"):
                Payment.objects.select_for_update().get(id=payment_id)
                is_holding.set()


AGAIN = "Another transaction changed the same payments at the same time. The import starts again."
DEADLOCK = (
    "CommandError: The database failed, and nothing was changed: deadlock detected. "
    "Other transactions changed the same payments. Run the command again."
)


@pytest.mark.only("postgresql")
@pytest.mark.parametrize(
    ("kind", "messages"),
    [
        ("file", [AGAIN, "12 records read: 10 payments created, 2 changed (description 2), 0 unchanged, 0 refused."]),
        ("pipe", [DEADLOCK]),
        ("file with an error", ["{file}:13: is not an object in JSON", DEADLOCK]),
    ],
)
def test_import_is_repeated_once_after_a_deadlock(
    tmp_path: Path, settings: Settings, kind: str, messages: list[str]
) -> None:
    settings.PAYMENTS_IMPORT_BATCH_RECORDS = BATCH_RECORDS
    file = tmp_path / "payments"
    records = [line(id=f"pt_{number}", description="imported") for number in range(2)]
    content = b"\n".join(in_two_batches(records) + [b"7"] * ("error" in kind))
    with fresh_database(tmp_path) as url, connected_to(url):
        store([line(id=f"pt_{number}", description="stored") for number in range(2)])
        execute(f'ALTER DATABASE "{fetch_value("SELECT current_database()")}" SET deadlock_timeout = 50')
        if kind == "pipe":
            os.mkfifo(file)
        writing = Thread(target=file.write_bytes, args=[content])
        writing.start()
        if kind != "pipe":
            writing.join()

        with registered(Holder(url)) as holder:
            done = manage("import_payments", "--keep-going", f"{file}", url=url)

        for thread in [writing, *holder.threads]:
            thread.join()
        is_written = messages[-1] != DEADLOCK
        assert done.stderr.splitlines()[: len(messages)] == [message.format(file=file) for message in messages]
        assert done.returncode == (0 if is_written else 1)
        assert set(descriptions().values()) == {"imported" if is_written else "stored"}


@pytest.mark.only("postgresql")
def test_two_imports_in_opposite_order_both_succeed(
    tmp_path: Path, settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without waiting for the other one, the repeated import could meet it again in the same way."""
    settings.PAYMENTS_IMPORT_BATCH_RECORDS = BATCH_RECORDS
    records = [[line(id=f"pt_{number}", description=text) for number in range(2)] for text in ("first", "second")]
    files = [tmp_path / "first", tmp_path / "second"]
    files[0].write_bytes(b"\n".join(in_two_batches(records[0])))
    files[1].write_bytes(b"\n".join(in_two_batches(records[1][::-1])))

    def import_file(file: Path) -> None:
        with connected_to(url):
            call_command("import_payments", f"{file}")

    with fresh_database(tmp_path) as url, connected_to(url), ThreadPoolExecutor() as pool:
        store([line(id=f"pt_{number}", description="stored") for number in range(2)])
        with registered(FirstBatches()):
            list(pool.map(import_file, files))
        described = descriptions()

    assert described in ({"pt_0": "first", "pt_1": "first"}, {"pt_0": "second", "pt_1": "second"})
    assert capfd.readouterr().err.count(AGAIN) == 1
