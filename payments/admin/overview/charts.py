"""Bar and line charts as SVG coordinates in whole units. The page stretches the drawing to its own size.

A chart has a column for each day or week. The column is a link with a tooltip.
"""

from collections.abc import Sequence
from typing import NamedTuple

HEIGHT = 1000
STEP = 10  # from one column to the next
GAP = 2  # between two bars
STROKE = 8  # of a single point


class Label(NamedTuple):
    """The tooltip of a column, and its link."""

    title: str
    href: str


class Bar(NamedTuple):
    """A bar, and the height of its darker part."""

    x: int
    width: int
    height: int
    part_height: int


class BarChart(NamedTuple):
    """Bars side by side, each in a column. `top` is the number at the full height."""

    bars: Sequence[Bar]
    labels: Sequence[Label]
    width: int
    top: int


class LineChart(NamedTuple):
    """A line from column to column, as SVG points. Columns without a value divide it into segments."""

    segments: Sequence[str]
    labels: Sequence[Label]
    width: int


def bar_chart(numbers: Sequence[int], *, parts: Sequence[int], labels: Sequence[Label]) -> BarChart:
    """Draw a bar for each number, with a darker part that stands for the number in `parts`."""
    top = round_up(max(numbers, default=0))
    bars = [
        Bar(index * STEP + GAP // 2, STEP - GAP, bar_height(number, top), bar_height(part, top))
        for index, (number, part) in enumerate(zip(numbers, parts, strict=True))
    ]
    return BarChart(bars, labels, len(bars) * STEP, top)


def bar_height(number: int, top: int) -> int:
    """Return the height of a bar; a positive number has at least a visible one, a negative number has none."""
    return max(HEIGHT // 100, number * HEIGHT // top) if number > 0 else 0


def round_up(number: int) -> int:
    """Return the next number that is 1, 2 or 5 times a power of ten."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if number <= factor * power:
                return factor * power
        power *= 10


def line_chart(shares: Sequence[float | None], *, labels: Sequence[Label]) -> LineChart:
    """Draw shares from 0 to 1 as a line that is interrupted where a share is None."""
    segments: list[list[str]] = [[]]
    for index, share in enumerate(shares):
        if share is None:
            segments.append([])
        else:
            segments[-1].append(f"{index * STEP + STEP // 2},{round((1 - share) * HEIGHT)}")
    lines = [" ".join(visible_points(points)) for points in segments if points]
    return LineChart(lines, labels, len(shares) * STEP)


def visible_points(points: Sequence[str]) -> Sequence[str]:
    """Return points that draw a visible line: a single point becomes a short stroke."""
    if len(points) > 1:
        return points
    x, _, y = points[0].partition(",")
    return [f"{int(x) - STROKE // 2},{y}", f"{int(x) + STROKE // 2},{y}"]
