"""Runs wrk, and measures the processor time of the servers meanwhile."""

import json
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil
from tqdm import tqdm

from benchmarks.servers import RunningServer

SCRIPT = Path(__file__).with_name("load.lua")
CONNECTIONS = 8
WARM_UP_SECONDS = 1
FOREVER = "1h"  # longer than any measurement

Key = TypeVar("Key", bound=Hashable)


class LoadFailed(Exception):
    """Some requests failed, so the measured speed means nothing."""


@dataclass(frozen=True)
class Case:
    """Paths that are requested from a server. A path can be followed by a tab and an ETag to send as If-None-Match."""

    server: RunningServer
    paths: Sequence[str]
    connections: int = CONNECTIONS
    prepare: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class LoadResult:
    """The speed of a server under load, and the processor time of a request."""

    requests_per_second: float
    p50_ms: float
    p99_ms: float
    server_cpu_ms: float
    database_cpu_ms: float
    response_bytes: float  # with the header fields

    @property
    def cpu_ms(self) -> float:
        return self.server_cpu_ms + self.database_cpu_ms

    @property
    def tail(self) -> float:
        return self.p99_ms / self.p50_ms


def measure(cases: Mapping[Key, Case], *, seconds: float, rounds: int) -> dict[Key, list[LoadResult]]:
    """Measure all cases in each round, one after the other, every second round in the opposite order."""
    results: dict[Key, list[LoadResult]] = {key: [] for key in cases}
    for number in tqdm(range(rounds), unit=" rounds", disable=None):
        for key in list(cases) if number % 2 == 0 else reversed(list(cases)):
            results[key].append(run_load(cases[key], seconds=seconds))
    return results


def warm_up(cases: Mapping[Key, Case], *, seconds: float) -> None:
    """Let all workers connect and prepare their statements."""
    measure(cases, seconds=min(seconds, WARM_UP_SECONDS), rounds=1)


def run_load(case: Case, *, seconds: float) -> LoadResult:
    """Request paths in random order. A connection sends its next request as soon as it has a response.

    :raises LoadFailed: if a request has no response, or one that is not successful
    """
    case.prepare()
    processes = case.server.process, case.server.database.process
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(case.paths))
        file.flush()
        before = [cpu_seconds(process) for process in processes]
        summary = run_wrk(
            *("--threads", "1", "--connections", str(case.connections), "--script", str(SCRIPT)),
            *(case.server.base_url, "--", file.name, case.server.database.key),
            seconds=seconds,
        )
        after = [cpu_seconds(process) for process in processes]
    is_too_short = summary["requests"] == summary["failed"] == 0 or before == after
    if is_too_short and seconds < WARM_UP_SECONDS:  # no response yet, or no tick of the clock of processor time
        return run_load(case, seconds=WARM_UP_SECONDS)
    if summary["failed"] or not summary["requests"]:
        raise LoadFailed(f"{case.server.base_url}: {summary}")
    ms_per_request = 1000 / summary["requests"]
    return LoadResult(
        requests_per_second=summary["requests"] / summary["seconds"],
        p50_ms=summary["p50_ms"],
        p99_ms=summary["p99_ms"],
        server_cpu_ms=(after[0] - before[0]) * ms_per_request,
        database_cpu_ms=(after[1] - before[1]) * ms_per_request,
        response_bytes=summary["bytes"] / summary["requests"],
    )


def run_wrk(*arguments: str, seconds: float) -> dict[str, float]:
    """Run wrk with load.lua, and return its summary. Ctrl-C ends wrk: its own duration is in whole seconds."""
    command = ["wrk", "--duration", FOREVER, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    summary: dict[str, float] = json.loads(output.splitlines()[-1])
    return summary


def cpu_seconds(process: psutil.Process | None) -> float:
    """Return the processor time of a process and of its children, including those that have ended."""
    if process is None:
        return 0
    times = process.cpu_times()
    own: float = times.user + times.system + times.children_user + times.children_system
    return own + sum(map(own_cpu_seconds, process.children(recursive=True)))


def own_cpu_seconds(child: psutil.Process) -> float:
    try:
        times = child.cpu_times()
    except psutil.NoSuchProcess:
        return 0  # it has just ended, and is included in its parent's times
    seconds: float = times.user + times.system
    return seconds


def median(results: Sequence[LoadResult], name: str) -> float:
    """Return the median of an attribute."""
    values: list[float] = [getattr(result, name) for result in results]
    return statistics.median(values)


def ratios(name: str, results: Sequence[LoadResult], others: Sequence[LoadResult]) -> list[float]:
    """Return the ratio of an attribute to the attribute of the others, for every round."""
    return [getattr(result, name) / getattr(other, name) for result, other in zip(results, others, strict=True)]
