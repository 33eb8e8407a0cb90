"""Sizes of the benchmarks."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Sizes of the benchmarks, which the command line sets."""

    rows: int = 1_000_000
    rounds: int = 7
    seconds: float = 4  # of each measurement
    round_trips_ms: tuple[float, ...] = (0.5, 1, 2)
    requests: int = 100_000  # before memory is measured again
    drop_index: str | None = None  # to measure an import without it
    install: bool = True  # a copy with the packages of production, to measure memory

    @property
    def fewer_rounds(self) -> int:
        return math.ceil(self.rounds / 2)

    @property
    def fewer_seconds(self) -> float:
        return min(self.seconds, 2)


QUICK = Options(rows=100_000, rounds=4, seconds=2)
