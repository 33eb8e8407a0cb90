"""Measures how the cost of a function grows with its input. Only ratios are compared, so any machine will do."""

import time
from collections.abc import Callable
from typing import Final

FACTOR: Final = 16
REPETITIONS: Final = 5

# For 16 times the input, linear work takes 16 times as long, and quadratic work 256 times.
LINEAR_MAX: Final = 64


def growth(prepare: Callable[[int], Callable[[], object]]) -> float:
    """Return the ratio of the processor times for 16 times the input and for the input.

    `prepare` returns the work for an input whose size is multiplied by its argument.
    """
    return seconds(prepare(FACTOR)) / seconds(prepare(1))


def seconds(work: Callable[[], object]) -> float:
    """Return the lowest processor time of several repetitions, which is the least disturbed."""
    return min(timed(work) for _ in range(REPETITIONS))


def timed(work: Callable[[], object]) -> float:
    started_at = time.process_time()
    work()
    return time.process_time() - started_at
