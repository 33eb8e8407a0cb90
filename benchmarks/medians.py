"""What several rounds come to: the middle of what was measured, and how far ratios lie apart."""

import statistics
from collections.abc import Iterable, Sequence


def median(measured: Iterable[object], name: str) -> float:
    """Return the median of what each has under that name."""
    values: list[float] = [getattr(each, name) for each in measured]
    return statistics.median(values)


def ranged(ratios: Sequence[float], *, digits: int = 2) -> str:
    """Return the median of ratios, and the smallest and the greatest of them."""
    middle, least, most = (f"{each:.{digits}f}" for each in (statistics.median(ratios), min(ratios), max(ratios)))
    return f"{middle} ({least} to {most})"
