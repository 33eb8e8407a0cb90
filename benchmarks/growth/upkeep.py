"""What a vacuum gives to pages, and takes; and what it gives to build an index anew."""

import json
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.dataset import LARGE
from benchmarks.growth.dataset import UNTIL, records
from benchmarks.growth.importing import EACH_ROUND, cost, write
from benchmarks.growth.reading import ACCESS, Asked
from benchmarks.growth.sizes import length
from benchmarks.growth.tables import PLAIN, TABLE, execute
from benchmarks.pages import LIMITS, read_by
from payments.listing import Listing
from payments.page import page_statement
from payments.record import encode

NEW_RECORDS = 20_000
LATER = EACH_ROUND * 20  # than all that was imported before


def measure_vacuuming() -> Iterator[str]:
    """Yield the lines of a table: pages among payments that were just imported, before a vacuum and after."""
    place = imported_place()
    yield "| vacuum | s | buffers of a page of 20, of 250 | rows that the index alone did not show |"
    yield "|---|---|---|---|"
    yield f"| none since the import | | {read_from(place)} |"
    for command in ("VACUUM", "VACUUM", "VACUUM (FREEZE)"):
        began = time.perf_counter()
        execute(f"{command} {TABLE}")
        yield f"| `{command}` | {time.perf_counter() - began:.1f} | {read_from(place)} |"


def imported_place() -> str:
    """Import payments that are newer than all others, and return one of them."""
    with tempfile.NamedTemporaryFile() as file:
        new = list(records(NEW_RECORDS, until=UNTIL + LATER, span=EACH_ROUND))
        write(Path(file.name), (encode(record) + b"\n" for record in new))
        cost(PLAIN, Path(file.name))
    later_half = new[len(new) // 2 :]
    return next(record.id for record in later_half if record.organization_id == str(LARGE.id))


def read_from(place: str) -> str:
    pages = [Asked("", page_statement(limit, has_start=True), Listing(ACCESS), place).explained() for limit in LIMITS]
    buffers = ", ".join(str(read_by([(page,)])) for page in pages)
    fetched = ", ".join(str(sum(map(int, re.findall(r'"Heap Fetches": (\d+)', json.dumps(page))))) for page in pages)
    return f"{buffers} | {fetched}"


def measure_rebuilding() -> Iterator[str]:
    """Yield the lines of a table: each index as it has grown, and built anew."""
    [(count,)] = execute(f"SELECT count(*) FROM {TABLE}")  # noqa: S608
    yield "| index | bytes a payment, grown | built anew | in s |"
    yield "|---|---|---|---|"
    for (name,) in execute("SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass", [TABLE]):
        before = length(name) / count
        began = time.perf_counter()
        execute(f"REINDEX INDEX CONCURRENTLY {name}")
        seconds = time.perf_counter() - began
        yield f"| `{name}` | {before:.0f} | {length(name) / count:.0f} | {seconds:.0f} |"
