"""Walks over HTTP while two writers commit, and the errors that a walk must not make."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from itertools import chain, count
from random import Random
from threading import Event
from typing import NamedTuple

from payments.ingest import import_payments
from payments.models import ApiKey, Mode, Organization, Payment, SequenceType, Status
from payments.record import record_time
from tests.support.api import payment_ids
from tests.support.connecting import connected_to
from tests.support.lines import line, source
from tests.support.lists import noon_plus
from tests.support.scale import report
from tests.support.service import Walker

OPEN_SHOPS = 4
PAYMENTS_MAX = 60
WALKERS = 4
PAUSE_SECONDS_MAX = 0.004


class WalkErrors(NamedTuple):
    """The payments that a walk skipped, repeated, or should not have seen."""

    skipped: Set[str]
    repeated: Set[str]
    foreign: Set[str]


def walk_errors(pages: Iterable[list[str]], *, promised: Set[str], visible: Set[str]) -> WalkErrors:
    """Compare the IDs of a walk with the promised ones (P1) and with all that its key may see (P4)."""
    occurrences = Counter(chain.from_iterable(pages))
    return WalkErrors(
        skipped=promised - occurrences.keys(),
        repeated={payment_id for payment_id, number in occurrences.items() if number > 1},
        foreign=occurrences.keys() - visible,
    )


def store_payments(created: dict[str, int], *, organization: int, mode: str) -> None:
    """Store payments; `created` has the milliseconds after noon at which each was created, by ID."""
    Payment.objects.bulk_create(
        Payment(
            id=payment_id,
            organization_id=organization,
            mode=mode,
            created_at=noon_plus(milliseconds),
            amount=Decimal("10.00"),
            amount_currency="EUR",
            status=Status.OPEN,
            sequence_type=SequenceType.ONEOFF,
        )
        for payment_id, milliseconds in created.items()
    )


@dataclass
class Shop:
    """The payments of one organization and mode, as their writers know them, and a key that sees them.

    Times are milliseconds after noon.
    """

    organization_id: int
    mode: str
    key: str
    now: int = 0
    begun: set[str] = field(default_factory=set)  # IDs that are committed or may be
    committed: dict[str, int] = field(default_factory=dict)  # the time at which each payment was created, by ID

    @contextmanager
    def committing(self, created: dict[str, int]) -> Iterator[None]:
        self.begun.update(created)
        yield
        self.committed.update(created)


class Market:
    """Shops with growing lists. A new shop replaces a shop whose list is long."""

    def __init__(self) -> None:
        self.shop_numbers, self.payment_numbers = count(), count()
        self.shops = [self.new_shop() for _ in range(OPEN_SHOPS)]
        self.closed = Event()

    def new_shop(self) -> Shop:
        """Return a new shop. Two successive shops belong to one organization, in both modes."""
        number = next(self.shop_numbers)
        organization, _ = Organization.objects.get_or_create(id=10**9 + number // 2, defaults={"name": "Shop"})
        key, text = ApiKey.objects.issue(organization, mode=Mode.values[number % 2], name="Tests")
        return Shop(organization.id, key.mode, text)

    def new_ids(self, chance: Random) -> list[str]:
        return [f"pt_{chance.choice('09AZaz')}{next(self.payment_numbers)}" for _ in range(chance.randint(1, 3))]

    def write(self, url: str, change: Callable[[Shop, list[str], Random], None], *, seed: int) -> int:
        """Change one shop after the other until the market closes. Return the number of changes."""
        chance = Random(seed)  # noqa: S311
        changes = 0
        with connected_to(url):
            while not self.closed.wait(chance.uniform(0, PAUSE_SECONDS_MAX)):
                number = chance.randrange(OPEN_SHOPS)
                if len(self.shops[number].begun) >= PAYMENTS_MAX:
                    self.shops[number] = self.new_shop()
                change(self.shops[number], self.new_ids(chance), chance)
                changes += 1
        return changes


def import_newest(shop: Shop, new_ids: list[str], chance: Random) -> None:
    """Import new payments, and existing payments with a new status."""
    shop.now += chance.randint(0, 1)
    created = dict.fromkeys(new_ids, shop.now)
    existing = {payment_id: shop.committed[payment_id] for payment_id in list(shop.committed)[:2]}
    lines = [
        line(
            id=payment_id,
            organizationId=str(shop.organization_id),
            mode=shop.mode,
            createdAt=record_time(noon_plus(milliseconds)),
            status=chance.choice(Status.values),
        )
        for payment_id, milliseconds in (created | existing).items()
    ]
    with shop.committing(created):
        result = import_payments([source(b"\n".join(lines))], on_refused=lambda location, error: None)
    assert result.refused == 0


def insert_old(shop: Shop, new_ids: list[str], chance: Random) -> None:
    """Insert payments that were created in the past, and change one payment."""
    created = {payment_id: chance.randint(0, shop.now) for payment_id in new_ids}
    with shop.committing(created):
        store_payments(created, organization=shop.organization_id, mode=shop.mode)
    # In its own transaction: it would otherwise lock payments after the state, and an import does the opposite.
    Payment.objects.filter(id=chance.choice([*new_ids, *shop.committed])).update(status=Status.FAILED)


def walk_shops(base_url: str, market: Market, *, walks: int, seed: int) -> tuple[Counter[str], list[WalkErrors]]:
    """Walk the lists of the shops, until payments were committed meanwhile. Return figures, and errors of walks.

    A walk is promised the payments that were committed before it requested its first page.
    """
    chance = Random(seed)  # noqa: S311
    figures: Counter[str] = Counter()
    errors_of_walks = []
    with Walker(base_url, key="") as walker:
        while figures["walks"] < walks or not figures["committed_meanwhile"]:
            shop = chance.choice(market.shops)
            promised = set(shop.committed)
            walker.key = shop.key
            href = f"{base_url}/v2/payments?limit={chance.randint(1, PAYMENTS_MAX)}"
            pages = [payment_ids(page) for page in walker.walk("next", href)]
            committed_meanwhile = len(shop.committed) - len(promised)
            errors = walk_errors(pages, promised=promised, visible=set(shop.begun))
            errors_of_walks += [errors] if any(errors) else []
            figures.update(
                walks=1, pages=len(pages), payments=sum(map(len, pages)), committed_meanwhile=committed_meanwhile
            )
            figures.update({name: len(payments) for name, payments in errors._asdict().items()})
    return figures, errors_of_walks


def walk_while_two_write(base_url: str, database_url: str, *, walks: int, seed: int) -> Counter[str]:
    """Check the promises of many walks while two writers commit. Return figures."""
    with connected_to(database_url):
        market = Market()
    walk = partial(walk_shops, base_url, market, walks=walks // WALKERS)
    write = partial(market.write, database_url)

    with ThreadPoolExecutor(2 + WALKERS) as pool:
        writers = [pool.submit(write, change, seed=seed) for change in (import_newest, insert_old)]
        try:
            walkers = [pool.submit(walk, seed=seed + number) for number in range(WALKERS)]
            results = [walker.result() for walker in walkers]
        finally:
            market.closed.set()
        commits = sum(writer.result() for writer in writers)

    figures: Counter[str] = Counter(commits=commits)
    for figures_of_walker, _ in results:
        figures.update(figures_of_walker)
    report(f"Walks over HTTP while two writers commit, SEED={seed}: {dict(figures)}")
    assert [errors for _, errors_of_walker in results for errors in errors_of_walker] == []
    return figures
