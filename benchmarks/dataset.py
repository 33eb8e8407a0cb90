"""The payments of the benchmarks: those of a year until today, most of them of one organization."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Raw

from payments.demo import SHOPS, demo_record
from payments.models import Mode, Status
from payments.record import Record, encode

SPAN = timedelta(days=365)
MODE: str = Mode.LIVE.value
LARGE, SMALL = SHOPS[0], SHOPS[1]
SHARE_OF_LARGE = 0.9
SHARE_OF_TIE = 0.054  # of all payments; they share one timestamp in the middle of the time span
SHARE_OF_OLD = 0.035  # only these payments contain the word `retired`, and only the oldest ones are authorized
RECURRING = 0.3
RARE_INTERVAL = 50_000  # of pending payments


def today() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def records(count: int) -> Iterator[Record]:
    """Yield `count` payments that were created at regular intervals, the oldest first."""
    rng = random.Random(count)  # noqa: S311  repeatable, not secret
    until = today()
    tie = range(count // 2, count // 2 + round(count * SHARE_OF_TIE))
    for number in range(count):
        position = tie.start if number in tie else number
        created_at = until - SPAN + SPAN * (position / count)
        created_at = created_at.replace(microsecond=created_at.microsecond // 1000 * 1000)
        shop = LARGE if number in tie or rng.random() < SHARE_OF_LARGE else SMALL
        record = demo_record(rng, shop, Mode.LIVE, created_at, recurring=rng.random() < RECURRING)
        is_old = number < count * SHARE_OF_OLD
        yield msgspec.structs.replace(
            record,
            description=" ".join([record.description, *["retired"] * is_old, *["batch"] * (number in tie)]),
            status=status(record.status, number, is_old=is_old),
            metadata=Raw(encode({"reference": f"R{number}", "shop": "web"})),
        )


def status(random_status: str, number: int, *, is_old: bool) -> str:
    """Return a status. Few payments are pending, and only old payments are authorized."""
    if random_status in {Status.OPEN, Status.PENDING} and number % (RARE_INTERVAL // 25):  # 1 in 25 has such a status
        return Status.EXPIRED
    return Status.FAILED if random_status == Status.AUTHORIZED and not is_old else random_status
