"""VACUUM and REINDEX: their duration, and their effect on pages and on the size of indexes."""

import json
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.dataset import LARGE
from benchmarks.growth.dataset import UNTIL, records
from benchmarks.growth.importing import ROUND_SPAN, measure, write
from benchmarks.growth.reading import ACCESS, Query
from benchmarks.growth.sizes import length
from benchmarks.growth.tables import PLAIN, TABLE, execute
from benchmarks.pages import LIMITS
from payments.listing import Listing
from payments.page import page_statement
from payments.record import encode
from tests.support.sql import buffers_read

NEW_RECORDS = 20_000
LATER = ROUND_SPAN * 20  # after all payments of earlier imports


def measure_vacuuming() -> Iterator[str]:
    """Yield the lines of a table: pages of payments that were just imported, before and after VACUUM."""
    start = import_new_payments()
    yield "| VACUUM | s | buffers of a page of 20, of 250 | rows that were also read from the table |"
    yield "|---|---|---|---|"
    yield f"| none since the import | | {page_costs(start)} |"
    for command in ("VACUUM", "VACUUM", "VACUUM (FREEZE)"):
        began = time.perf_counter()
        execute(f"{command} {TABLE}")
        yield f"| `{command}` | {time.perf_counter() - began:.1f} | {page_costs(start)} |"


def import_new_payments() -> str:
    """Import payments that are newer than all others, and return the ID of one of them."""
    with tempfile.NamedTemporaryFile() as file:
        new = list(records(NEW_RECORDS, until=UNTIL + LATER, span=ROUND_SPAN))
        write(Path(file.name), (encode(record) + b"\n" for record in new))
        measure(PLAIN, Path(file.name))
    later_half = new[len(new) // 2 :]
    return next(record.id for record in later_half if record.organization_id == str(LARGE.id))


def page_costs(start: str) -> str:
    plans = [Query("", page_statement(limit, has_start=True), Listing(ACCESS), start).plan() for limit in LIMITS]
    buffers = ", ".join(str(buffers_read(plan)) for plan in plans)
    fetches = ", ".join(str(sum(map(int, re.findall(r'"Heap Fetches": (\d+)', json.dumps(plan))))) for plan in plans)
    return f"{buffers} | {fetches}"


def measure_rebuilding() -> Iterator[str]:
    """Yield the lines of a table: the size of each index before and after it is rebuilt."""
    [(count,)] = execute(f"SELECT count(*) FROM {TABLE}")  # noqa: S608
    yield "| index | bytes per payment | rebuilt | in s |"
    yield "|---|---|---|---|"
    for (name,) in execute("SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass", [TABLE]):
        before = length(name) / count
        began = time.perf_counter()
        execute(f"REINDEX INDEX CONCURRENTLY {name}")
        seconds = time.perf_counter() - began
        yield f"| `{name}` | {before:.0f} | {length(name) / count:.0f} | {seconds:.0f} |"
