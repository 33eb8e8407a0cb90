"""Clients that follow the change feed over HTTP while six writers commit, some of them late, beside a slow import."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from io import RawIOBase
from threading import Event
from typing import Any, TypeAlias

from django.test import override_settings

from payments.anonymization import anonymize_payments
from payments.ingest import Source, import_payments
from payments.models import Access, ApiKey, Organization, Payment
from payments.record import record_time
from tests.support.connecting import connected_to
from tests.support.factories import NOON, PaymentFactory
from tests.support.held_imports import Pipe
from tests.support.lines import line
from tests.support.scale import report
from tests.support.service import Service, Walker

ACCESS = Access(7777, "live")
FOLLOWERS = 3
PAYMENTS_PER_WRITER = 200
HELD_SECONDS_MAX = 1.0


class SlowInput(RawIOBase):
    """An input that arrives piece by piece: the pauses are between the pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces = pieces

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        piece = next(self.pieces, b"")
        memoryview(buffer)[: len(piece)] = piece  # type: ignore[arg-type]
        return len(piece)


@dataclass
class Writer:
    """Writes payments of its own until the end. The payments of all writers are in the same feed."""

    number: int
    chance: random.Random
    is_over: Event
    figures: Counter[str] = field(default_factory=Counter)

    def ids(self) -> list[str]:
        """Return IDs of new or existing payments of this writer."""
        numbers = self.chance.sample(range(PAYMENTS_PER_WRITER), self.chance.randint(2, 8))
        return [f"pt_{self.number}x{number}" for number in numbers]

    def record(self, payment_id: str) -> bytes:
        text = str(self.chance.randrange(10**9))
        return line(
            id=payment_id,
            organizationId=str(ACCESS.organization_id),
            description=text,
            createdAt=record_time(NOON),
            customerId=f"ct_{self.number}",
        )

    def import_slowly(self, *, pieces: int, seconds: float) -> None:
        """Import payments that arrive in pieces. Some imports end with an invalid record, and change nothing."""

        def arrive() -> Iterator[bytes]:
            for _ in range(pieces):
                yield b"".join(self.record(payment_id) + b"\n" for payment_id in self.ids())
                self.is_over.wait(self.chance.uniform(0, 2 * seconds / pieces))
            if self.chance.random() < 0.1:
                yield b"nonsense\n"

        source = Source("arriving", Pipe(SlowInput(arrive())))
        result = import_payments([source], on_refused=lambda location, error: None)
        self.figures.update(imports=1, failed_imports=min(result.refused, 1), payments=result.written)

    def write_with_orm(self) -> None:
        payments = Payment.objects.filter(id__in=self.ids(), organization_id=ACCESS.organization_id)
        self.figures.update(orm_updates=1, payments=payments.update(description=str(self.chance.randrange(10**9))))
        new = f"pt_{self.number}x{self.chance.randrange(PAYMENTS_PER_WRITER)}"
        if not Payment.objects.filter(id=new).exists():
            PaymentFactory.create(
                id=new, organization=Organization(id=ACCESS.organization_id), customer_id=f"ct_{self.number}"
            )

    def anonymize(self) -> None:
        changed = anonymize_payments(ACCESS, customer_id=f"ct_{self.number}", on_progress=lambda _: None)
        self.figures.update(anonymizations=1, payments=changed)

    def run(self, write: Callable[["Writer"], None], url: str) -> Counter[str]:
        with connected_to(url):
            while not self.is_over.wait(self.chance.uniform(0, 0.02)):
                write(self)
        return self.figures


Write: TypeAlias = Callable[[Writer], None]


def writes(slow_import_seconds: float) -> list[Write]:
    """Return what the six writers do, and the slow import beside them."""

    def hold(writer: Writer) -> None:
        writer.import_slowly(pieces=writer.chance.randint(1, 4), seconds=writer.chance.uniform(0, HELD_SECONDS_MAX))

    def import_quickly_and_anonymize(writer: Writer) -> None:
        writer.import_slowly(pieces=1, seconds=0)
        if writer.chance.random() < 0.2:
            writer.anonymize()

    slow = partial(Writer.import_slowly, pieces=20, seconds=slow_import_seconds)
    return [hold, hold, hold, import_quickly_and_anonymize, Writer.write_with_orm, Writer.write_with_orm, slow]


@dataclass
class Follower:
    """A client that keeps a copy of the payments: their descriptions by ID."""

    href: str
    key: str
    copy: dict[str, str] = field(default_factory=dict)
    figures: Counter[str] = field(default_factory=Counter)

    def follow(self, is_over: Event) -> None:
        with Walker(self.href, self.key) as walker:
            while not is_over.wait(0.005):
                self.read_to_end(walker)

    def read_to_end(self, walker: Walker) -> None:
        has_next = True
        while has_next:
            page = walker.get(self.href)
            for payment in page["_embedded"]["payments"]:
                self.copy[payment["id"]] = payment["description"]
            self.figures.update(pages=1, read=page["count"])
            self.href = page["_links"]["later"]["href"]
            has_next = "next" in page["_links"]


def follow_while_six_write(service: Service, *, seconds: float, slow_import: float, seed: int) -> None:
    """Check that clients that have read the feed to its end have the current state of every payment.

    `slow_import` is the duration of the slow import in seconds.
    """
    with connected_to(service.database_url):
        organization, _ = Organization.objects.get_or_create(id=ACCESS.organization_id, defaults={"name": "Shop"})
        _, key = ApiKey.objects.issue(organization, mode=ACCESS.mode, name="Tests")
    beginning = f"{service.base_url}/v2/payments/changes?limit="
    followers = [Follower(f"{beginning}{limit}", key) for limit in (1, 20, 250)]
    with override_settings(PAYMENTS_IMPORT_BATCH_RECORDS=2):  # so that an import writes what has arrived
        figures = run_together(writes(slow_import), followers, service.database_url, seconds=seconds, seed=seed)
    compare([*followers, Follower(f"{beginning}250", key)], service.database_url, figures)
    report(f"Clients of the feed while six write, SEED={seed}: {dict(figures)}")
    assert figures["missed"] == figures["stale"] == 0
    assert figures["imports"] > figures["failed_imports"]
    assert figures["orm_updates"] > 0


def run_together(
    all_writes: Sequence[Write], followers: Sequence[Follower], database_url: str, *, seconds: float, seed: int
) -> Counter[str]:
    """Run a writer for each kind of write, and the followers, for a time. Return the figures of the writers."""
    is_over = Event()
    chances = [random.Random(f"{seed} {number}") for number in range(len(all_writes))]  # noqa: S311
    writers = [Writer(number, chance, is_over) for number, chance in enumerate(chances)]
    with ThreadPoolExecutor(len(writers) + len(followers)) as pool:
        writing = [
            pool.submit(writer.run, write, database_url) for writer, write in zip(writers, all_writes, strict=True)
        ]
        following = [pool.submit(follower.follow, is_over) for follower in followers]
        tasks: list[Future[Any]] = [*writing, *following]
        wait(tasks, timeout=seconds, return_when=FIRST_COMPLETED)  # no task ends before that, unless it fails
        is_over.set()
        for task in following:
            task.result()
        return sum((task.result() for task in writing), Counter[str]())


def compare(followers: Sequence[Follower], database_url: str, figures: Counter[str]) -> None:
    """Let the followers read the feed to its end, and count the payments that a copy lacks, or has in an old state."""
    with connected_to(database_url):
        current = dict(Payment.objects.visible_to(ACCESS).values_list("id", "description"))
    for follower in followers:
        with Walker(follower.href, follower.key) as walker:
            follower.read_to_end(walker)
        missed, stale = current.keys() - follower.copy.keys(), follower.copy.items() - current.items()
        figures.update(follower.figures | {"missed": len(missed), "stale": len(stale)})
