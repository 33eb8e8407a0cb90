"""Numbers as the shapes of an SVG, in whole units, which a page stretches to its own size."""

from collections.abc import Sequence
from typing import NamedTuple

HEIGHT = 1000
STEP = 10  # from one column to the next
GAP = 2


class Column(NamedTuple):
    """A day: a bar, a part of which is darker, and what they stand for."""

    x: int
    width: int
    whole: int
    part: int
    title: str


class Columns(NamedTuple):
    """Bars side by side, and the number that the full height stands for."""

    columns: Sequence[Column]
    width: int
    top: int


class Line(NamedTuple):
    """Shares from 0 to 1, from day to day, as runs of points, which break off where there is none."""

    runs: Sequence[str]
    width: int


def columns(parts: Sequence[int], wholes: Sequence[int], titles: Sequence[str]) -> Columns:
    top = rounded_up(max(wholes, default=0))
    bars = [
        Column(number * STEP + GAP // 2, STEP - GAP, height(whole, top), height(part, top), title)
        for number, (part, whole, title) in enumerate(zip(parts, wholes, titles, strict=True))
    ]
    return Columns(bars, len(bars) * STEP, top)


def height(number: int, top: int) -> int:
    """Return how high a bar is; what is not nothing can be seen."""
    return max(HEIGHT // 100, number * HEIGHT // top) if number > 0 else 0


def rounded_up(number: int) -> int:
    """Return the next number that begins with 1, 2 or 5 and goes on with zeros."""
    size = 1
    while True:
        for first in (1, 2, 5):
            if number <= first * size:
                return first * size
        size *= 10


def line(shares: Sequence[float | None]) -> Line:
    runs: list[list[str]] = [[]]
    for number, share in enumerate(shares):
        if share is None:
            runs.append([])
        else:
            runs[-1].append(f"{number * STEP + STEP // 2},{round((1 - share) * HEIGHT)}")
    return Line([" ".join(widened(run)) for run in runs if run], len(shares) * STEP)


def widened(run: Sequence[str]) -> Sequence[str]:
    """Return a run that can be seen: a day between two without any is a short stroke."""
    if len(run) > 1:
        return run
    x, _, y = run[0].partition(",")
    return [f"{int(x) - 2},{y}", f"{int(x) + 2},{y}"]
