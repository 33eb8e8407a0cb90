"""What a worker holds, before and after a hundred thousand requests, with nothing installed but what it needs."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.load import Load, put_under_load
from benchmarks.pages import LIMITS, Places
from benchmarks.servers import SERVICE, Running, running
from tests.support.processes import ROOT

REQUESTS = 100_000
SECONDS_EACH = 10
BYTES_PER_MB = 2**20
NOT_DEPLOYED = (".*", "var", "__pycache__")


def measure_memory(database_url: str, places: Places, *, load: Load) -> dict[str, int]:
    """Return the resident memory of the largest worker, in MB: when all kinds of page were asked for, and later."""
    paths = [SERVICE.path(limit, start) for limit in LIMITS for start in places.anywhere]
    for_a_while = replace(load, seconds=SECONDS_EACH)
    with deployed() as root, running(SERVICE, database_url, root=root) as service:
        answered = 0.0
        before = 0
        while answered < REQUESTS:
            measured = put_under_load(service.base_url, paths, server=service.process, load=for_a_while)
            answered += measured.requests_per_second * SECONDS_EACH
            before = before or largest(service)
        return {"worker": before, f"after_{REQUESTS}_requests": largest(service)}


@contextmanager
def deployed() -> Iterator[Path]:
    """Give a copy of the project, as it would be installed for production."""
    with tempfile.TemporaryDirectory(prefix="payments-deployed-") as directory:
        root = Path(directory) / "payments"
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*NOT_DEPLOYED))
        subprocess.run([root / "scripts/install"], stderr=subprocess.DEVNULL, check=True)  # noqa: S603
        yield root


def largest(service: Running) -> int:
    held: int = max(child.memory_info().rss for child in service.process.children(recursive=True))
    return round(held / BYTES_PER_MB)
