"""Memory of a worker, before and after many requests, installed as in production."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.database import LoadedDatabase, log
from benchmarks.load import Case, run_load
from benchmarks.options import Options
from benchmarks.pages import LIMITS, find_positions
from benchmarks.servers import SERVICE, running
from tests.support.processes import ROOT

RUN_SECONDS = 10
NOT_DEPLOYED = (".*", "var", "__pycache__")


def measure_memory(options: Options, database: LoadedDatabase) -> dict[str, Any]:
    """Return the resident memory of the largest worker in MB: after ten seconds of requests, and at the end."""
    log(f"Measuring memory: {options.requests} requests")
    positions = find_positions(database.url)
    seconds = min(options.seconds * RUN_SECONDS, RUN_SECONDS)
    requests, memory = 0.0, []
    with (
        deployed_copy() if options.install else nullcontext(ROOT) as root,
        running(SERVICE, database, root=root) as service,
    ):
        case = Case(service, [path for limit in LIMITS for path in positions.paths(service, limit)])
        while requests < options.requests:
            requests += run_load(case, seconds=seconds).requests_per_second * seconds
            memory.append(service.largest_worker_mb)
    return {"memory_mb": {"worker": memory[0], f"after_{options.requests}_requests": memory[-1]}}


@contextmanager
def deployed_copy() -> Iterator[Path]:
    """Yield a copy of the project with only the packages of production: with others, a worker needs 10 MB more."""
    with tempfile.TemporaryDirectory(prefix="payments-deployed-") as directory:
        root = Path(directory) / "payments"
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*NOT_DEPLOYED))
        subprocess.run([root / "scripts/install"], stderr=subprocess.DEVNULL, check=True)  # noqa: S603
        yield root
