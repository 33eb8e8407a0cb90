"""How often a test does a thing: enough for every run, or as often as a long run asks for (`benchmarks/endure`)."""

import os
import sys
from typing import Final

IS_LONG: Final = os.environ.get("LONG_RUN") == "true"

# Where chance begins in a test that leaves things to it: the same every time, unless SEED says otherwise.
SEED: Final = int(os.environ.get("SEED", "1"))


def times(usual: int, *, long: int) -> int:
    return long if IS_LONG else usual


def report(words: str) -> None:
    """Tell a long run's figures, for docs/reliability.md."""
    if IS_LONG:
        sys.stderr.write(f"{words}\n")
