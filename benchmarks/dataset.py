"""The payments that are measured: pure, and the same for the same count."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from payments.demo import SHOPS, demo_record
from payments.models import Mode
from payments.record import Record

UNTIL = datetime(2026, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=365)
LARGE, SMALL = SHOPS[0], SHOPS[1]
SHARE_OF_LARGE = 0.9
SHARE_OF_TIE = 0.054  # of all payments, on one instant, half way
RECURRING = 0.3


def records(count: int, *, until: datetime = UNTIL, span: timedelta = SPAN) -> Iterator[Record]:
    """Yield `count` live payments of some time, a year, the oldest first, as they would come in."""
    chance = random.Random(count)  # noqa: S311  repeatable, and nobody's secret
    tie = range(count // 2, count // 2 + round(count * SHARE_OF_TIE))
    for number in range(count):
        place = tie.start if number in tie else number
        moment = until - span + span * (place / count)
        shop = LARGE if number in tie or chance.random() < SHARE_OF_LARGE else SMALL
        moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        yield demo_record(chance, shop, Mode.LIVE, moment, recurring=chance.random() < RECURRING)
