"""Tables and figures of several rounds: medians, and the ratios of two servers with their range."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.database import log
from benchmarks.load import LoadResult, median

FIGURES = ("p50_ms", "p99_ms", "server_cpu_ms", "database_cpu_ms")


def load_figures(results: Sequence[LoadResult]) -> dict[str, Any]:
    """Return the medians by name."""
    return {
        "requests_per_second": round(median(results, "requests_per_second")),
        **{name: round(median(results, name), 3) for name in FIGURES},
    }


def ratio_figures(name: str, ratios: Sequence[float], *, digits: int = 2) -> dict[str, Any]:
    """Return the median and the range of a ratio."""
    return {
        name: round(statistics.median(ratios), digits),
        f"{name}_range": [round(min(ratios), digits), round(max(ratios), digits)],
    }


def log_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Log rows with the same columns as a Markdown table."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([text(value) for value in row.values()] for row in rows)]
    log("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")


def text(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(map(text, value))
    return f"{value:,}" if isinstance(value, int | float) else str(value)
