"""Walks over HTTP while two writers commit, and what a walk must not do."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, count
from random import Random
from threading import Event
from typing import NamedTuple

from django.db import transaction
from moneyed import Money

from payments.changes import renew_revision
from payments.ingest import import_payments
from payments.models import ApiKey, Mode, Organization, Payment, SequenceType, Status
from payments.record import record_time
from tests.support.api import ids
from tests.support.connecting import connected_to
from tests.support.factories import NOON
from tests.support.lines import line, source
from tests.support.scale import report
from tests.support.service import Walker

SHOPS_AT_ONCE = 4
PAYMENTS_MAX = 60
WALKERS = 4
PAUSE_SECONDS_MAX = 0.004


class Faults(NamedTuple):
    """What a walk must not do to payments: leave out one that was there, give one twice, give somebody else's."""

    skipped: Set[str]
    doubled: Set[str]
    foreign: Set[str]


def faults(pages: Iterable[list[str]], *, promised: Set[str], own: Set[str]) -> Faults:
    """Compare the ids that a walk gave with those that it had to give (P1) and with all that it might give (P4)."""
    given = Counter(chain.from_iterable(pages))
    return Faults(
        skipped=promised - given.keys(),
        doubled={payment_id for payment_id, number in given.items() if number > 1},
        foreign=given.keys() - own,
    )


def store(instants: dict[str, int], *, organization: int, mode: str) -> None:
    place = {"organization_id": organization, "mode": mode}
    what = {"amount": Money("10.00", "EUR"), "status": Status.OPEN, "sequence_type": SequenceType.ONEOFF}
    Payment.objects.bulk_create(
        Payment(id=payment_id, created_at=moment(instant), **place, **what) for payment_id, instant in instants.items()
    )


def moment(instant: int) -> datetime:
    return NOON + timedelta(milliseconds=instant)


@dataclass
class Shop:
    """An organization's payments of one mode, as those know them who write them; a key to see them with."""

    organization_id: int
    mode: str
    key: str
    now: int = 0
    begun: set[str] = field(default_factory=set)
    committed: dict[str, int] = field(default_factory=dict)  # and the instant of each

    @contextmanager
    def committing(self, instants: dict[str, int]) -> Iterator[None]:
        self.begun.update(instants)
        yield
        self.committed.update(instants)


class Market:
    """Shops into which payments come. One that has so many that a walk is long makes room for the next."""

    def __init__(self) -> None:
        self.shop_numbers, self.payment_numbers = count(), count()
        self.shops = [self.new_shop() for _ in range(SHOPS_AT_ONCE)]
        self.is_over = Event()

    def new_shop(self) -> Shop:
        """Open a shop: two of a row are one organization's, in either mode."""
        number = next(self.shop_numbers)
        organization, _ = Organization.objects.get_or_create(id=10**9 + number // 2, defaults={"name": "Shop"})
        key, text = ApiKey.objects.issue(organization, mode=Mode.values[number % 2], name="Tests")
        return Shop(organization.id, key.mode, text)

    def new_ids(self, chance: Random) -> list[str]:
        return [f"pt_{chance.choice('09AZaz')}{next(self.payment_numbers)}" for _ in range(chance.randint(1, 3))]

    def write(self, url: str, change: Callable[[Shop, list[str], Random], None], *, seed: int) -> int:
        """Change one shop after the other until the market is over, and return how often that was."""
        chance = Random(seed)  # noqa: S311
        changes = 0
        with connected_to(url):
            while not self.is_over.wait(chance.uniform(0, PAUSE_SECONDS_MAX)):
                place = chance.randrange(SHOPS_AT_ONCE)
                if len(self.shops[place].begun) >= PAYMENTS_MAX:
                    self.shops[place] = self.new_shop()
                change(self.shops[place], self.new_ids(chance), chance)
                changes += 1
        return changes


def import_newest(shop: Shop, new: list[str], chance: Random) -> None:
    """Import new payments and again some that are there, which have changed."""
    shop.now += chance.randint(0, 1)
    instants = dict.fromkeys(new, shop.now)
    again = {payment_id: shop.committed[payment_id] for payment_id in list(shop.committed)[:2]}
    place = {"organizationId": str(shop.organization_id), "mode": shop.mode}
    lines = [
        line(id=payment_id, createdAt=record_time(moment(instant)), status=chance.choice(Status.values), **place)
        for payment_id, instant in (instants | again).items()
    ]
    with shop.committing(instants):
        imported = import_payments([source(b"\n".join(lines))], on_refused=lambda place, error: None)
    assert imported.refused == 0


def insert_old(shop: Shop, new: list[str], chance: Random) -> None:
    """Insert payments of moments past, and change one that is there."""
    instants = {payment_id: chance.randint(0, shop.now) for payment_id in new}
    with shop.committing(instants), transaction.atomic():
        store(instants, organization=shop.organization_id, mode=shop.mode)
        Payment.objects.filter(id=chance.choice([*new, *shop.committed])).update(status=Status.FAILED)
        renew_revision([shop.organization_id])


def walk_about(base_url: str, market: Market, *, walks: int, seed: int) -> tuple[Counter[str], list[Faults]]:
    """Walk through the shops; hold each walk to what was committed before its first page was asked for."""
    chance = Random(seed)  # noqa: S311
    figures: Counter[str] = Counter()
    wrong = []
    with Walker(base_url, key="") as walker:
        for _ in range(walks):
            shop = chance.choice(market.shops)
            promised = set(shop.committed)
            walker.key = shop.key
            href = f"{base_url}/v2/payments?limit={chance.randint(1, PAYMENTS_MAX)}"
            pages = [ids(page) for page in walker.walk("next", href)]
            meanwhile = len(shop.committed) - len(promised)
            found = faults(pages, promised=promised, own=set(shop.begun))
            wrong += [found] if any(found) else []
            figures.update(walks=1, pages=len(pages), payments=sum(map(len, pages)), committed_meanwhile=meanwhile)
            figures.update({name: len(payments) for name, payments in found._asdict().items()})
    return figures, wrong


def walk_while_two_write(base_url: str, database_url: str, *, walks: int, seed: int) -> Counter[str]:
    """Hold many walks to what is promised of each, and return figures of them."""
    with connected_to(database_url):
        market = Market()
    walk = partial(walk_about, base_url, market, walks=walks // WALKERS)
    write = partial(market.write, database_url)

    with ThreadPoolExecutor(2 + WALKERS) as pool:
        writing = [pool.submit(write, change, seed=seed) for change in (import_newest, insert_old)]
        try:
            walked = [walking.result() for walking in [pool.submit(walk, seed=seed + each) for each in range(WALKERS)]]
        finally:
            market.is_over.set()
        commits = sum(writer.result() for writer in writing)

    figures: Counter[str] = Counter(commits=commits)
    for each, _ in walked:
        figures.update(each)
    report(f"Walks over HTTP while two writers commit, SEED={seed}: {dict(figures)}")
    assert [fault for _, wrong in walked for fault in wrong] == []
    assert figures["committed_meanwhile"] > 0
    return figures
