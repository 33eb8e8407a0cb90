"""All growth benchmarks, with one table of figures each."""

from collections.abc import Iterator

from benchmarks.growth import tables
from benchmarks.growth.importing import measure_importing, measure_wal
from benchmarks.growth.maintenance import measure_rebuilding, measure_vacuuming
from benchmarks.growth.ranges import measure_ranges
from benchmarks.growth.reading import measure_anywhere, measure_reading
from benchmarks.growth.sizes import measure_sizes
from benchmarks.growth.updates import measure_updates


def measure_growth(*, count: int, rounds: int) -> Iterator[str]:
    """Yield the lines of all tables, with an empty line after each."""
    for table in (tables.BY_ORGANIZATION, tables.BY_MONTH):
        tables.create(table)
    for lines in (
        measure_sizes(),
        measure_reading(rounds=rounds),
        measure_anywhere(),
        measure_ranges(),
        measure_importing(count=count, rounds=rounds),
        measure_wal(count=count),
        measure_vacuuming(),
        measure_rebuilding(),
        measure_updates(),
    ):
        yield from lines
        yield ""
