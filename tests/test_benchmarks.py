"""The benchmarks run with few payments and short measurements, and return their figures."""

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks import attack_load, attack_requests
from tests.support.commands import output_of, run_command
from tests.support.processes import ROOT
from tests.support.service import inherited_environment
from tests.support.tools import unavailable

pytestmark = [pytest.mark.once, pytest.mark.processes, pytest.mark.extended]

PYTHON = sys.executable
SMALLEST = (
    *("--rows", "1000", "--rounds", "1", "--seconds", "0.1", "--round-trip", "1", "--requests", "1"),
    *("--drop-index", "payment_list", "--no-install"),
)
PACKAGES = ("asyncpg", "fastapi", "gunicorn", "uvicorn")
PEERS = {"stock_drf", "fastapi", "raw_wsgi"}
COMMANDS = ("pages", "round-trip", "memory", "filters", "admin", "sizes", "transfer")

LOAD = {"requests_per_second", "p50_ms", "p99_ms", "server_cpu_ms", "database_cpu_ms"}
COMPARED = LOAD | {"service_over", "service_over_range"}
SERVERS = {"service": LOAD, "fastapi": COMPARED, "raw_wsgi": COMPARED}
PER_LIMIT = {"limit_20", "limit_250"}
DEPTHS = {"newest", "middle", "end", "ties"}
ROUND_TRIP = {
    **dict.fromkeys(("service", "fastapi", "raw_wsgi", "p50_one_connection_ms", "measured_round_trip_ms")),
    **dict.fromkeys(("of_local", "of_local_range")),
    **dict.fromkeys(("connections_8", "connections_32"), SERVERS),
}
# The figures of `benchmarks/run`, which other programs read.
FIGURES = {
    "limit_20": PEERS,
    "limit_250": PEERS,
    "not_modified": PER_LIMIT,
    "depth": DEPTHS,
    "sqlite_depth": DEPTHS,
    "buffers": {"limit_20", "limit_20_ties", "limit_250", "limit_250_ties"},
    "round_trip": dict.fromkeys(("local", "0", "1"), ROUND_TRIP),
    "tail": {"8", "32"},
    "tail_over_raw_wsgi": {"8", "32"},
    "memory_mb": {"worker", "after_1_requests"},
    "import": {
        *("records_per_second", "of_copy", "unchanged_per_second", "changed_per_second", "memory_mb"),
        *("sqlite_records_per_second", "sqlite_changed_per_second", "memory_mb_of_a_tenth", "of_import_without_index"),
    },
    "export": {"records_per_second", "memory_mb"},
    "copy": {"records_per_second"},
}


@pytest.mark.needs("wrk")
def test_every_benchmark_returns_its_figures(tmp_path: Path) -> None:
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        unavailable(f"{', '.join(missing)} are not installed (scripts/install --benchmarks).")

    results = run_benchmarks(tmp_path, *COMMANDS)

    pages = {name: results.pop(name) for name in ("filters", "admin")}
    assert all(page["median_ms"] > 0 for page in (*pages["filters"].values(), *pages["admin"].values()))
    assert results.pop("sizes")["all"] > 0
    assert names(results) == names(FIGURES)


def test_imports_are_measured_beside_lists(tmp_path: Path) -> None:
    results = run_benchmarks(tmp_path, "imports")["imports"]

    assert results.pop("command").keys() == {"1", "100", "10000"}
    assert results.pop("list_idle")["p99_ms"] > 0
    assert results.pop("list_busy")["p99_ms"] > 0
    assert results.keys() == {f"{clients} clients, {size} records" for clients in (1, 8) for size in (1, 100, 10_000)}
    assert all(figures["records_per_second"] > 0 and figures["list"]["p99_ms"] > 0 for figures in results.values())


@pytest.mark.needs("wrk")
def test_checkouts_are_compared_in_processor_time_speed_and_start(tmp_path: Path) -> None:
    results = run_benchmarks(tmp_path, "compare", str(ROOT))

    assert set(results["start"]) == {"manage.py check", "scripts/start"}
    assert set(results["cpu"]) == {"limit_20", "limit_250", "not_modified", "payment", "feed", "filter"}
    assert all(figures["ratio"] > 0 for figures in results["cpu"].values())
    assert set(results["load"]) == {"local", "1"}
    for place in results["load"].values():
        for kinds in place.values():
            assert all(figures["ratio"] > 0 and figures["this_tail"] >= 1 for figures in kinds.values())


@pytest.mark.needs("wrk")
def test_each_attack_reports_what_happened() -> None:
    done = run_command(
        [PYTHON, "-m", "benchmarks.attacks", "--payments", "500", "--seconds", "1"], cwd=ROOT, env=environment()
    )

    lines = dict(line[len("pass  ") :].split(": ", 1) for line in done.stdout.splitlines())
    assert list(lines) == [*attack_load.ATTACKS, *attack_requests.ATTACKS]
    assert all("p99" in lines[name] and "failed" in lines[name] for name in attack_load.ATTACKS)
    assert not re.findall(f"FAIL  (?:{'|'.join(attack_requests.ATTACKS)}): .*", done.stdout)


def test_endure_lists_the_areas_of_long_tests() -> None:
    done = run_command([ROOT / "benchmarks/endure"])

    assert done.returncode == 2
    assert "  import_faults\n" in done.stderr


def run_benchmarks(directory: Path, *command: str) -> Any:
    """Return the results that a run of the smallest size writes."""
    path = directory / "results.json"
    output_of([PYTHON, "-m", "benchmarks", *command, *SMALLEST, "--json", path], cwd=ROOT, env=environment())
    return json.loads(path.read_text())


def environment() -> dict[str, str]:
    return inherited_environment() | {"SECRET_KEY": "for-tests-alone-".ljust(50, "0"), "WEB_WORKERS": "1"}


def names(figures: Any) -> Any:
    """Return the names of nested figures, without the figures."""
    if isinstance(figures, dict):
        return {name: names(value) for name, value in figures.items()}
    return dict.fromkeys(figures) if isinstance(figures, set) else None
