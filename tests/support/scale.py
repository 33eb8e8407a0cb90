"""How often a test repeats what it tests.

A usual run repeats it often enough to find each wrong implementation. A long run (`benchmarks/endure`) repeats it more
often. A run that explores (`scripts/test --explore`) looks for new examples.
"""

import os
import sys
from typing import Final

IS_LONG: Final = os.environ.get("LONG_RUN") == "true"
IS_EXPLORING: Final = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
EXPLORING_FACTOR: Final = 10

# Where chance begins in a test that leaves things to it: the same every time, unless SEED says otherwise.
SEED: Final = int(os.environ.get("SEED", "1"))


def times(usual: int, *, long: int) -> int:
    return long if IS_LONG else usual


def examples(usual: int, *, long: int | None = None) -> int:
    """Return how many examples hypothesis tries."""
    if IS_EXPLORING:
        return usual * EXPLORING_FACTOR
    return usual if long is None else times(usual, long=long)


def report(words: str) -> None:
    """Tell a long run's figures, for docs/reliability.md."""
    if IS_LONG:
        sys.stderr.write(f"{words}\n")
