"""How often the import takes other numbers for card numbers."""

import random
import uuid
from collections.abc import Callable, Iterator

from benchmarks import dataset
from payments.ingest.batches import parse
from payments.ingest.card_data import exposes_card_number, has_clear_card_number
from payments.ingest.sources import Location, RawRecord
from payments.ingest.stored_rows import StoredRow
from payments.record import encode

RANDOM_NUMBERS = 200_000


def digits(rng: random.Random, count: int) -> str:
    return f"{rng.randrange(10**count):0{count}}"


RANDOM_TEXTS: dict[str, Callable[[random.Random], str]] = {
    "an order number, 8 digits": lambda rng: f"Order {digits(rng, 8)}",
    "a time in milliseconds": lambda rng: str(rng.randrange(1_500_000_000_000, 1_900_000_000_000)),
    "13 digits": lambda rng: digits(rng, 13),
    "15 digits": lambda rng: digits(rng, 15),
    "16 digits": lambda rng: digits(rng, 16),
    "19 digits": lambda rng: digits(rng, 19),
    "16 digits in groups of four": lambda rng: " ".join(digits(rng, 4) for _ in range(4)),
    "22 digits": lambda rng: digits(rng, 22),
    "a UUID": lambda rng: str(uuid.UUID(int=rng.getrandbits(128))),
    "two numbers of 8 digits": lambda rng: f"{digits(rng, 8)}, {digits(rng, 8)}",
}


def is_accepted(text: bytes) -> bool:
    (_, content), *_ = parse(RawRecord(Location("demo", 1), text))
    return isinstance(content, StoredRow)


def measure_card_numbers(*, count: int) -> Iterator[str]:
    """Yield the lines of a table: the share of texts that are refused in `details`, and in a description."""
    refused = sum(not is_accepted(encode(record)) for record in dataset.records(count))
    yield f"{refused} of {count} demo payments are refused."
    yield ""
    yield "| text | refused in `details` | refused in a description |"
    yield "|---|---|---|"
    for name, make in RANDOM_TEXTS.items():
        rng = random.Random(name)  # noqa: S311  repeatable, not secret
        texts = [make(rng) for _ in range(RANDOM_NUMBERS)]
        shares = (sum(map(test, texts)) / RANDOM_NUMBERS for test in (exposes_card_number, has_clear_card_number))
        yield f"| {name} | {' | '.join(f'{share:.2%}' for share in shares)} |"
