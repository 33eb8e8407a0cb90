"""What a payment takes, in the table and in each index; and how deep the indexes are."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.growth.tables import PLAIN, TABLE, TABLES, Table, execute, leaves

PAGE_BYTES = 8192

# What a page of a b-tree ends with (PostgreSQL's nbtree.h): both neighbours, its level above the leaves, what it is.
END_OF_PAGE = struct.Struct("=IIIHH")
DELETED, META = 1 << 2, 1 << 3


@dataclass(frozen=True)
class Size:
    """Of all partitions together; the levels are those of the deepest, the upper pages those that are no leaves."""

    length: int
    levels: int
    upper_pages: int


def measure_sizes() -> Iterator[str]:
    """Yield the lines of a table."""
    execute("CHECKPOINT")
    [(count,)] = execute(f"SELECT count(*) FROM {TABLE}")  # noqa: S608
    found = {table.name: dict(sizes(table)) for table in TABLES}
    yield f"| {count:,} payments | {' | '.join(f'{name}: bytes a payment | levels' for name in found)} | upper pages |"
    yield "|---|" + "---|---|" * len(found) + "---|"
    for relation, of_whole in found[PLAIN.name].items():
        cells = [cell for each in found.values() for cell in (per(each[relation], count), levels(each[relation]))]
        share = of_whole.upper_pages * PAGE_BYTES / of_whole.length if of_whole.upper_pages else 0
        yield f"| {relation} | {' | '.join(cells)} | {f'{share:.2%}' if share else ''} |"
    totals = [cell for each in found.values() for cell in (f"{sum(s.length for s in each.values()) / count:.0f}", "")]
    yield f"| all | {' | '.join(totals)} | |"


def per(size: Size, count: int) -> str:
    return f"{size.length / count:.0f}"


def levels(size: Size) -> str:
    return str(size.levels or "")


def sizes(table: Table) -> Iterator[tuple[str, Size]]:
    """Yield the size of each relation of a table, by its name."""
    yield "the table", Size(sum(map(length, leaves(table))), 0, 0)
    yield "what is too long for it (TOAST)", Size(sum(map(toast_length, leaves(table))), 0, 0)
    for name, kind in execute(
        "SELECT relname, amname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
        "JOIN pg_am ON pg_am.oid = relam WHERE indrelid = %s::regclass ORDER BY relname",
        [f"{table.schema}.{TABLE}"],
    ):
        parts = leaves(table, name)
        depths = [pages_by_level(part) for part in parts] if kind == "btree" else []
        yield (
            f"`{name}`",
            Size(
                sum(map(length, parts)),
                max((len(depth) for depth in depths), default=0),
                sum(sum(depth[1:]) for depth in depths),
            ),
        )


def length(relation: str) -> int:
    [(found,)] = execute("SELECT pg_relation_size(%s)", [relation])
    return int(found)


def toast_length(relation: str) -> int:
    [(found,)] = execute(
        "SELECT pg_total_relation_size(reltoastrelid) FROM pg_class WHERE oid = %s::regclass", [relation]
    )
    return int(found)


def pages_by_level(index: str) -> list[int]:
    """Return how many pages each level of a b-tree has, the leaves first, from its files as they were checkpointed."""
    counted: dict[int, int] = {}
    for path in files(index):
        with path.open("rb", buffering=0) as file:
            for end in range(PAGE_BYTES, path.stat().st_size + 1, PAGE_BYTES):
                file.seek(end - END_OF_PAGE.size)
                _, _, level, flags, _ = END_OF_PAGE.unpack(file.read(END_OF_PAGE.size))
                if not flags & (DELETED | META):
                    counted[level] = counted.get(level, 0) + 1
    return [counted.get(level, 0) for level in range(max(counted, default=-1) + 1)]


def files(relation: str) -> Iterator[Path]:
    """Yield the files of a relation: one for each GB of it."""
    [(directory, name)] = execute("SELECT current_setting('data_directory'), pg_relation_filepath(%s)", [relation])
    first = Path(directory) / name
    yield first
    number = 1
    while (following := first.with_name(f"{first.name}.{number}")).exists():
        yield following
        number += 1
