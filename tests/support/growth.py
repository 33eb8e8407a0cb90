"""How the work of a function grows with its input. Only a ratio is compared, so no machine is too slow."""

import time
from collections.abc import Callable
from typing import Final

FACTOR: Final = 16
REPETITIONS: Final = 5

# Work that grows with its input takes 16 times as long, work that grows with its square 256 times.
LINEAR_MAX: Final = 64


def growth(prepare: Callable[[int], Callable[[], object]]) -> float:
    """Return how many times as long the work takes for 16 times the input.

    `prepare` gives the work for an input of a small size times a factor.
    """
    return seconds(prepare(FACTOR)) / seconds(prepare(1))


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of the least disturbed of some repetitions."""
    return min(timed(work) for _ in range(REPETITIONS))


def timed(work: Callable[[], object]) -> float:
    begun_at = time.process_time()
    work()
    return time.process_time() - begun_at
