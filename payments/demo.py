"""Realistic demo payments of three web shops in one year. The same seed and end give the same payments.

A third of the payments share their creation time with others, as if a scheduler charged subscriptions. Most payments
are by card, and most succeeded.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec import UNSET, Raw, UnsetType

from payments.models import Mode, SequenceType, Status
from payments.models.identifiers import RANDOM_BYTES, base62, make_payment_id
from payments.record import Money, Record, encode, record_time

Choice = TypeVar("Choice")

SPAN = timedelta(days=365)
BATCH_SHARE = 0.05  # of the creation times, those that several payments share
BATCH_PAYMENTS_MAX = 18
CUSTOMERS = 2000
CUSTOMER_ID_FACTOR = 1_234_567_891  # spreads the IDs, which would otherwise be consecutive
CUSTOMER_SHARE = 0.6  # of the single payments, those with a customer

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
FAILURE_REASONS = ("insufficient_funds", "card_declined", "expired_card")
CARDS = {"Visa": ("424242", 16), "Mastercard": ("555555", 16), "American Express": ("378282", 15)}
COUNTRIES = {"EUR": "NL", "GBP": "GB", "JPY": "JP", "USD": "US"}


@dataclass(frozen=True)
class Shop:
    """An organization with demo payments, its share of them, and the weights of its currencies."""

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
    """Yield `count` records of the year before `until`, in random order.

    A higher count begins with the same records.
    """
    rng = random.Random(seed)  # noqa: S311  reproducible, not for security
    left = count
    while left > 0:
        shop = rng.choices(SHOPS, [shop.share for shop in SHOPS])[0]
        mode = choose(rng, MODES)
        created_at = until - SPAN * rng.random()
        is_batch = rng.random() < BATCH_SHARE
        for _ in range(min(left, rng.randint(2, BATCH_PAYMENTS_MAX) if is_batch else 1)):
            yield demo_record(rng, shop, mode, created_at, recurring=is_batch)
            left -= 1


def demo_record(rng: random.Random, shop: Shop, mode: Mode, created_at: datetime, *, recurring: bool) -> Record:
    order = rng.randrange(10_000, 100_000)
    status = choose(rng, STATUSES)
    method = "creditcard" if recurring else choose(rng, METHODS)
    currency = choose(rng, shop.currencies)
    cents = max(100, round(100 * rng.lognormvariate(3.4, 0.9)))
    if currency == "JPY":
        cents = cents // 100 * 10_000
    paid = status == Status.SUCCEEDED
    return Record(
        id=make_payment_id(created_at, rng.randbytes(RANDOM_BYTES)),
        mode=mode.value,
        amount=demo_money(cents, currency),
        amount_net=demo_money(cents - 25 - cents // 50, currency) if paid else UNSET,
        amount_remaining=demo_money(cents, currency) if paid else UNSET,
        description=f"Subscription {created_at:%Y-%m}" if recurring else f"Order {order}",
        method=UNSET if status == Status.OPEN else method,
        redirect_url=UNSET if recurring else f"https://shop.example/orders/{order}",
        webhook_url="https://shop.example/webhooks/payments",
        status=status.value,
        organization_id=str(shop.id),
        sequence_type=(SequenceType.RECURRING if recurring else SequenceType.ONEOFF).value,
        metadata=Raw(encode({} if recurring else {"order": str(order)})),
        details=UNSET if status == Status.OPEN else details(rng, method, currency, status=status),
        created_at=record_time(created_at),
        expires_at=record_time(created_at + timedelta(minutes=15))
        if status in {Status.OPEN, Status.EXPIRED}
        else UNSET,
        paid_at=record_time(created_at + timedelta(seconds=rng.randrange(2, 120))) if paid else UNSET,
        customer_id=f"ct_{base62(rng.randrange(2**40) % CUSTOMERS * CUSTOMER_ID_FACTOR, digits=7)}"
        if recurring or rng.random() < CUSTOMER_SHARE
        else UNSET,
    )


def choose(rng: random.Random, weights: dict[Choice, int]) -> Choice:
    return rng.choices(list(weights), list(weights.values()))[0]


def demo_money(cents: int, currency: str) -> Money:
    return Money(value=f"{cents // 100}.{cents % 100:02}", currency=currency)


def details(rng: random.Random, method: str, currency: str, *, status: Status) -> Raw | UnsetType:
    name = f"{rng.choice('ABCDEFGHJKLM')}. {rng.choice(NAMES)}"
    if method == "paypal":
        return UNSET
    if method != "creditcard":
        return Raw(encode({"consumerName": name}))
    label, (prefix, length) = rng.choice(list(CARDS.items()))
    number = f"{prefix}{'X' * (length - 10)}{rng.randrange(10_000):04}"
    card = {
        "cardCountryCode": COUNTRIES[currency],
        "cardHolder": name,
        "cardLabel": label,
        "cardNumber": " ".join(number[start : start + 4] for start in range(0, length, 4)),
    }
    if status == Status.FAILED:
        card["failureReason"] = FAILURE_REASONS[int(number[-1]) % len(FAILURE_REASONS)]
    return Raw(encode(card))
