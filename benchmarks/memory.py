"""Memory of a worker, before and after a hundred thousand requests, installed as in production."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.load import Load, run_load
from benchmarks.pages import LIMITS, Positions
from benchmarks.servers import SERVICE, RunningServer, running
from tests.support.processes import ROOT

REQUESTS = 100_000
RUN_SECONDS = 10
BYTES_PER_MB = 2**20
NOT_DEPLOYED = (".*", "var", "__pycache__")


def measure_memory(database_url: str, positions: Positions, *, load: Load) -> dict[str, int]:
    """Return the resident memory of the largest worker in MB: after ten seconds of requests, and at the end."""
    paths = [SERVICE.path(limit, start) for limit in LIMITS for start in positions.anywhere]
    short_load = replace(load, seconds=RUN_SECONDS)
    with deployed_copy() as root, running(SERVICE, database_url, root=root) as service:
        requests = 0.0
        memory_at_start = 0
        while requests < REQUESTS:
            result = run_load(service.base_url, paths, server=service.process, load=short_load)
            requests += result.requests_per_second * RUN_SECONDS
            memory_at_start = memory_at_start or largest_worker_mb(service)
        return {"worker": memory_at_start, f"after_{REQUESTS}_requests": largest_worker_mb(service)}


@contextmanager
def deployed_copy() -> Iterator[Path]:
    """Yield a copy of the project with only the packages of production."""
    with tempfile.TemporaryDirectory(prefix="payments-deployed-") as directory:
        root = Path(directory) / "payments"
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*NOT_DEPLOYED))
        subprocess.run([root / "scripts/install"], stderr=subprocess.DEVNULL, check=True)  # noqa: S603
        yield root


def largest_worker_mb(service: RunningServer) -> int:
    largest: int = max(child.memory_info().rss for child in service.process.children(recursive=True))
    return round(largest / BYTES_PER_MB)
