"""All benchmarks of the change feed, with one table of figures each."""

from collections.abc import Iterator

from benchmarks.changes.serving import measure_polls, measure_reading
from benchmarks.changes.updates import measure_updates
from benchmarks.changes.variants import measure_variants


def measure_changes(url: str, key: str, *, rows: int) -> Iterator[str]:
    """Yield the lines of all tables, with an empty line between them."""
    yield from measure_reading(url, key)
    yield ""
    yield from measure_polls(url, key)
    yield ""
    yield from measure_variants(url, rows=rows)
    yield ""
    yield from measure_updates(rows=rows)
