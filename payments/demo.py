"""Demo payments: believable, and the same for the same seed and end. Pure: neither a clock nor chance of its own.

The year of three web shops: a third of the payments are tied in time with others, as when a scheduler charges
subscriptions; most are by card; most are paid.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec import UNSET, Raw, UnsetType

from payments.identifiers import RANDOM_BYTES, base62, payment_id
from payments.models import Mode, SequenceType, Status
from payments.record import Money, Record, encode
from payments.rows import record_time

Drawn = TypeVar("Drawn")

SPAN = timedelta(days=365)
TIED_EVERY = 0.05
CUSTOMERS = 2000
CUSTOMERS_APART = 1_234_567_891  # so that their ids do not look counted
CUSTOMERS_KNOWN = 0.6
TIED_PAYMENTS_MAX = 18

NAMES = ("Baker", "Cook", "Fisher", "Mason", "Miller", "Potter", "Smith", "Taylor", "Turner", "Weaver")
MODES = {Mode.LIVE: 80, Mode.TEST: 20}
METHODS = {"creditcard": 60, "ideal": 15, "paypal": 12, "banktransfer": 8, "directdebit": 5}
STATUSES = {
    Status.SUCCEEDED: 78,
    Status.FAILED: 6,
    Status.EXPIRED: 5,
    Status.CANCELED: 5,
    Status.OPEN: 2,
    Status.PENDING: 2,
    Status.AUTHORIZED: 2,
}
CARDS = {"Visa": ("424242", 16), "Mastercard": ("555555", 16), "American Express": ("378282", 15)}
COUNTRIES = {"EUR": "NL", "GBP": "GB", "JPY": "JP", "USD": "US"}


@dataclass(frozen=True)
class Shop:
    """An organization to whom demo payments belong, and how its customers pay."""

    id: int
    name: str
    share: int
    currencies: dict[str, int]


SHOPS = (
    Shop(1001, "Demo Books", 60, {"EUR": 80, "GBP": 12, "USD": 8}),
    Shop(1002, "Demo Bikes", 30, {"EUR": 100}),
    Shop(1003, "Demo Music", 10, {"USD": 70, "JPY": 30}),
)


def demo_records(count: int, *, seed: int, until: datetime) -> Iterator[Record]:
    """Yield `count` records of the year before `until`, in no order. More of them begin with the same ones."""
    chance = random.Random(seed)  # noqa: S311  repeatable, and nobody's secret
    left = count
    while left > 0:
        shop = chance.choices(SHOPS, [shop.share for shop in SHOPS])[0]
        mode = drawn(chance, MODES)
        created_at = until - SPAN * chance.random()
        tied = chance.random() < TIED_EVERY
        for _ in range(min(left, chance.randint(2, TIED_PAYMENTS_MAX) if tied else 1)):
            yield demo_record(chance, shop, mode, created_at, recurring=tied)
            left -= 1


def demo_record(chance: random.Random, shop: Shop, mode: Mode, created_at: datetime, *, recurring: bool) -> Record:
    order = chance.randrange(10_000, 100_000)
    status = drawn(chance, STATUSES)
    method = "creditcard" if recurring else drawn(chance, METHODS)
    currency = drawn(chance, shop.currencies)
    cents = max(100, round(100 * chance.lognormvariate(3.4, 0.9)))
    if currency == "JPY":
        cents = cents // 100 * 10_000
    paid = status == Status.SUCCEEDED
    return Record(
        id=payment_id(created_at, chance.randbytes(RANDOM_BYTES)),
        mode=mode.value,
        amount=money(cents, currency),
        amount_net=money(cents - 25 - cents // 50, currency) if paid else UNSET,
        amount_remaining=money(cents, currency) if paid else UNSET,
        description=f"Subscription {created_at:%Y-%m}" if recurring else f"Order {order}",
        method=UNSET if status == Status.OPEN else method,
        redirect_url=UNSET if recurring else f"https://shop.example/orders/{order}",
        webhook_url="https://shop.example/webhooks/payments",
        status=status.value,
        organization_id=str(shop.id),
        sequence_type=(SequenceType.RECURRING if recurring else SequenceType.ONEOFF).value,
        metadata=Raw(encode({} if recurring else {"order": str(order)})),
        details=UNSET if status == Status.OPEN else details(chance, method, currency),
        created_at=record_time(created_at),
        expires_at=record_time(created_at + timedelta(minutes=15))
        if status in {Status.OPEN, Status.EXPIRED}
        else UNSET,
        paid_at=record_time(created_at + timedelta(seconds=chance.randrange(2, 120))) if paid else UNSET,
        customer_id=f"ct_{base62(chance.randrange(2**40) % CUSTOMERS * CUSTOMERS_APART, digits=7)}"
        if recurring or chance.random() < CUSTOMERS_KNOWN
        else UNSET,
    )


def drawn(chance: random.Random, weights: dict[Drawn, int]) -> Drawn:
    return chance.choices(list(weights), list(weights.values()))[0]


def money(cents: int, currency: str) -> Money:
    return Money(value=f"{cents // 100}.{cents % 100:02}", currency=currency)


def details(chance: random.Random, method: str, currency: str) -> Raw | UnsetType:
    name = f"{chance.choice('ABCDEFGHJKLM')}. {chance.choice(NAMES)}"
    if method == "creditcard":
        label, (prefix, length) = chance.choice(list(CARDS.items()))
        return Raw(
            encode(
                {
                    "cardCountryCode": COUNTRIES[currency],
                    "cardHolder": name,
                    "cardLabel": label,
                    "cardNumber": grouped(f"{prefix}{'X' * (length - 10)}{chance.randrange(10_000):04}"),
                }
            )
        )
    if method == "paypal":
        return UNSET
    return Raw(encode({"consumerName": name}))


def grouped(number: str) -> str:
    return " ".join(number[start : start + 4] for start in range(0, len(number), 4))
