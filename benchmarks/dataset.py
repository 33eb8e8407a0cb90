"""The payments of the benchmarks. The same count gives the same payments."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from payments.demo import SHOPS, demo_record
from payments.models import Mode
from payments.record import Record

UNTIL = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=365)
MODE: str = Mode.LIVE.value
LARGE, SMALL = SHOPS[0], SHOPS[1]
SHARE_OF_LARGE = 0.9
SHARE_OF_TIE = 0.054  # of all payments; they share one timestamp in the middle of the time span
RECURRING = 0.3


def tie_of(count: int) -> range:
    """Return the numbers of the payments that share one timestamp."""
    return range(count // 2, count // 2 + round(count * SHARE_OF_TIE))


def records(count: int, *, until: datetime = UNTIL, span: timedelta = SPAN) -> Iterator[Record]:
    """Yield `count` payments that were created at regular intervals, the oldest first."""
    rng = random.Random(count)  # noqa: S311  repeatable, not secret
    tie = tie_of(count)
    for number in range(count):
        position = tie.start if number in tie else number
        created_at = until - span + span * (position / count)
        shop = LARGE if number in tie or rng.random() < SHARE_OF_LARGE else SMALL
        created_at = created_at.replace(microsecond=created_at.microsecond // 1000 * 1000)
        yield demo_record(rng, shop, Mode.LIVE, created_at, recurring=rng.random() < RECURRING)
