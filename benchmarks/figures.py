"""Figures of servers under load, from several rounds: medians, and the speed of the service relative to its peers."""

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.load import LoadResult
from benchmarks.medians import median
from benchmarks.servers import SERVICE

FIGURES = ("p50_ms", "p99_ms", "server_cpu_ms", "database_cpu_ms")
LOAD_HEADER = "requests/s  p50 ms  p99 ms  CPU ms of PostgreSQL"

Loads = dict[str, LoadResult]  # by name of the server


def load_columns(loads: Sequence[LoadResult]) -> str:
    """Return the medians as columns of a table with `LOAD_HEADER`."""
    return (
        f"{median(loads, 'requests_per_second'):>10.0f} "
        f"{median(loads, 'p50_ms'):>7.2f} {median(loads, 'p99_ms'):>7.2f} "
        f"{median(loads, 'server_cpu_ms'):>7.3f} {median(loads, 'database_cpu_ms'):>13.3f}"
    )


def load_figures(loads: Sequence[LoadResult]) -> dict[str, float]:
    """Return the medians by name."""
    return {
        "requests_per_second": round(median(loads, "requests_per_second")),
        **{name: round(median(loads, name), 3) for name in FIGURES},
    }


def server_figures(rounds: Sequence[Loads]) -> dict[str, dict[str, Any]]:
    """Return the medians of every server. Those of the peers include the service's speed over theirs."""
    return {
        name: load_figures([loads[name] for loads in rounds])
        | ({} if name == SERVICE.name else ratio_figures("service_over", service_ratios(name, rounds)))
        for name in rounds[0]
    }


def service_ratios(name: str, rounds: Sequence[Loads]) -> list[float]:
    """Return the service's requests per second divided by those of a server, for every round."""
    return [loads[SERVICE.name].requests_per_second / loads[name].requests_per_second for loads in rounds]


def ratio_figures(name: str, ratios: Sequence[float]) -> dict[str, Any]:
    """Return the median and the range of a ratio."""
    return {
        name: round(statistics.median(ratios), 2),
        f"{name}_range": [round(min(ratios), 2), round(max(ratios), 2)],
    }
