"""The number of repetitions in a test.

In a normal run, tests repeat often enough to detect every wrong implementation. In a long run (`benchmarks/endure`),
they repeat more often. An exploring run (`scripts/test --explore`) uses new random examples.
"""

import os
import sys
from typing import Final

IS_LONG: Final = os.environ.get("LONG_RUN") == "true"
IS_EXPLORING: Final = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
EXPLORING_FACTOR: Final = 10

# The seed of tests that use random numbers. It is the same in every run, unless SEED is set.
SEED: Final = int(os.environ.get("SEED", "1"))


def times(normal: int, *, long: int) -> int:
    """Return the number of repetitions in this run."""
    return long if IS_LONG else normal


def examples(normal: int, *, long: int | None = None) -> int:
    """Return the number of hypothesis's examples in this run."""
    if IS_EXPLORING:
        return normal * EXPLORING_FACTOR
    return normal if long is None else times(normal, long=long)


def report(figures: str) -> None:
    """Write the figures of a long run to stderr, for benchmarks/README.md."""
    if IS_LONG:
        sys.stderr.write(f"{figures}\n")
