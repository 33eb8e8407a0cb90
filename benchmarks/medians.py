"""Medians and ranges of several rounds."""

import statistics
from collections.abc import Iterable, Sequence


def median(results: Iterable[object], name: str) -> float:
    """Return the median of an attribute."""
    values: list[float] = [getattr(result, name) for result in results]
    return statistics.median(values)


def median_and_range(values: Sequence[float], *, digits: int = 2) -> str:
    """Return the median, the minimum and the maximum as text: `1.50 (1.20 to 1.70)`."""
    middle, minimum, maximum = (
        f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values))
    )
    return f"{middle} ({minimum} to {maximum})"
