"""What a worker holds, before and after a hundred thousand requests."""

from dataclasses import replace

from benchmarks.load import Load, put_under_load
from benchmarks.pages import LIMITS, Places
from benchmarks.servers import SERVICE, Running

REQUESTS = 100_000
SECONDS_EACH = 10
BYTES_PER_MB = 2**20


def measure_memory(service: Running, places: Places, *, load: Load) -> dict[str, int]:
    """Return the resident memory of the largest worker, in MB."""
    paths = [SERVICE.path(limit, start) for limit in LIMITS for start in places.anywhere]
    before = largest(service)
    answered = 0.0
    while answered < REQUESTS:
        for_a_while = replace(load, seconds=SECONDS_EACH)
        measured = put_under_load(service.base_url, paths, server=service.process, load=for_a_while)
        answered += measured.requests_per_second * SECONDS_EACH
    return {"worker": before, f"after_{REQUESTS}_requests": largest(service)}


def largest(service: Running) -> int:
    held: int = max(child.memory_info().rss for child in service.process.children(recursive=True))
    return round(held / BYTES_PER_MB)
