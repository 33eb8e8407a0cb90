"""wrk, and what the processors did meanwhile."""

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
    """Some requests were not answered, or not with what was asked for: their speed says nothing."""


@dataclass(frozen=True)
class Measured:
    """What one server did under load."""

    requests_per_second: float
    p50_ms: float
    p99_ms: float
    server_cpu_ms: float  # for each request
    database_cpu_ms: float


@dataclass(frozen=True)
class Load:
    """How a server is asked, and whose work is counted with its own."""

    key: str
    seconds: int
    database: psutil.Process
    connections: int = CONNECTIONS


def put_under_load(base_url: str, paths: Sequence[str], *, server: psutil.Process, load: Load) -> Measured:
    """Ask for `paths` in random order, as fast as the answers come.

    :raises LoadFailed: where a request had no answer, or one that is none of success
    """
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(paths))
        file.flush()
        before = cpu_seconds(server), cpu_seconds(load.database)
        done = subprocess.run(  # noqa: S603
            [
                *("wrk", "--threads", "1", "--connections", str(load.connections), "--duration", f"{load.seconds}s"),
                *("--script", SCRIPT, base_url, "--", file.name, load.key),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        after = cpu_seconds(server), cpu_seconds(load.database)
    found = json.loads(done.stdout.splitlines()[-1])
    if found["failed"] or not found["requests"]:
        raise LoadFailed(f"{base_url}: {found}")
    each_ms = 1000 / found["requests"]
    return Measured(
        requests_per_second=found["requests"] / found["seconds"],
        p50_ms=found["p50_ms"],
        p99_ms=found["p99_ms"],
        server_cpu_ms=(after[0] - before[0]) * each_ms,
        database_cpu_ms=(after[1] - before[1]) * each_ms,
    )


def cpu_seconds(process: psutil.Process) -> float:
    """Return what a process and its children have used, those that ended included."""
    times = process.cpu_times()
    own: float = times.user + times.system + times.children_user + times.children_system
    return own + sum(map(own_seconds, process.children(recursive=True)))


def own_seconds(child: psutil.Process) -> float:
    try:
        times = child.cpu_times()
    except psutil.NoSuchProcess:
        return 0  # it has just ended, and its parent's figures have it
    used: float = times.user + times.system
    return used
