"""Runs wrk, and measures the processor time of the servers meanwhile."""

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SCRIPT = Path(__file__).with_name("load.lua")
CONNECTIONS = 8


class LoadFailed(Exception):
    """Some requests failed, so the measured speed means nothing."""


@dataclass(frozen=True)
class Load:
    """The options of a run of wrk, and the database server whose processor time is measured."""

    key: str
    seconds: int
    database: psutil.Process
    connections: int = CONNECTIONS


@dataclass(frozen=True)
class LoadResult:
    """The speed of a server under load, and the processor time of a request."""

    requests_per_second: float
    p50_ms: float
    p99_ms: float
    server_cpu_ms: float
    database_cpu_ms: float
    response_bytes: float  # with the header fields


def run_load(base_url: str, paths: Sequence[str], *, server: psutil.Process, load: Load) -> LoadResult:
    """Request `paths` in random order. A connection sends its next request as soon as it has a response.

    A path can be followed by a tab and an ETag, which is sent as If-None-Match.

    :raises LoadFailed: if a request has no response, or one that is not successful
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(paths))
        file.flush()
        before = cpu_seconds(server), cpu_seconds(load.database)
        completed = subprocess.run(  # noqa: S603
            [
                *("wrk", "--threads", "1", "--connections", str(load.connections), "--duration", f"{load.seconds}s"),
                *("--script", SCRIPT, base_url, "--", file.name, load.key),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        after = cpu_seconds(server), cpu_seconds(load.database)
    summary = json.loads(completed.stdout.splitlines()[-1])
    if summary["failed"] or not summary["requests"]:
        raise LoadFailed(f"{base_url}: {summary}")
    ms_per_request = 1000 / summary["requests"]
    return LoadResult(
        requests_per_second=summary["requests"] / summary["seconds"],
        p50_ms=summary["p50_ms"],
        p99_ms=summary["p99_ms"],
        server_cpu_ms=(after[0] - before[0]) * ms_per_request,
        database_cpu_ms=(after[1] - before[1]) * ms_per_request,
        response_bytes=summary["bytes"] / summary["requests"],
    )


def cpu_seconds(process: psutil.Process) -> float:
    """Return the processor time of a process and of its children, including those that have ended."""
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
