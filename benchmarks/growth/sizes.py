"""Bytes per payment of the table and of each index, and the levels of the indexes."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.growth.tables import PLAIN, TABLE, TABLES, Table, execute, leaves

PAGE_BYTES = 8192

# The end of a B-tree page (PostgreSQL's nbtree.h): both neighbours, the level above the leaves, flags, a cycle ID.
PAGE_END = struct.Struct("=IIIHH")
DELETED, META = 1 << 2, 1 << 3


@dataclass(frozen=True)
class Size:
    """The size of a relation with all its partitions. The levels are those of the deepest index."""

    length: int
    levels: int
    upper_pages: int  # all pages except leaves


def measure_sizes() -> Iterator[str]:
    """Yield the lines of a table."""
    execute("CHECKPOINT")
    [(count,)] = execute(f"SELECT count(*) FROM {TABLE}")  # noqa: S608
    sizes_of = {table.name: dict(sizes(table)) for table in TABLES}
    headings = " | ".join(f"{name}: bytes per payment | levels" for name in sizes_of)
    yield f"| {count:,} payments | {headings} | upper pages |"
    yield "|---|" + "---|---|" * len(sizes_of) + "---|"
    for relation, size in sizes_of[PLAIN.name].items():
        cells = " | ".join(size_cells(relations[relation], count) for relations in sizes_of.values())
        share = size.upper_pages * PAGE_BYTES / size.length if size.upper_pages else 0
        yield f"| {relation} | {cells} | {f'{share:.2%}' if share else ''} |"
    totals = (sum(size.length for size in relations.values()) / count for relations in sizes_of.values())
    yield f"| all | {' | '.join(f'{total:.0f} | ' for total in totals)} | |"


def size_cells(size: Size, count: int) -> str:
    return f"{size.length / count:.0f} | {size.levels or ''}"


def sizes(table: Table) -> Iterator[tuple[str, Size]]:
    """Yield the name and the size of each relation of a table."""
    yield "the table", Size(sum(map(length, leaves(table))), 0, 0)
    yield "TOAST", Size(sum(map(toast_length, leaves(table))), 0, 0)
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
    [(size,)] = execute("SELECT pg_relation_size(%s)", [relation])
    return int(size)


def toast_length(relation: str) -> int:
    [(size,)] = execute(
        "SELECT pg_total_relation_size(reltoastrelid) FROM pg_class WHERE oid = %s::regclass", [relation]
    )
    return int(size)


def pages_by_level(index: str) -> list[int]:
    """Return the number of pages on each level of a B-tree, leaves first, from its files at the last checkpoint."""
    pages: dict[int, int] = {}
    for path in files(index):
        with path.open("rb", buffering=0) as file:
            for end in range(PAGE_BYTES, path.stat().st_size + 1, PAGE_BYTES):
                file.seek(end - PAGE_END.size)
                _, _, level, flags, _ = PAGE_END.unpack(file.read(PAGE_END.size))
                if not flags & (DELETED | META):
                    pages[level] = pages.get(level, 0) + 1
    return [pages.get(level, 0) for level in range(max(pages, default=-1) + 1)]


def files(relation: str) -> Iterator[Path]:
    """Yield the files of a relation: one per GB."""
    [(directory, name)] = execute("SELECT current_setting('data_directory'), pg_relation_filepath(%s)", [relation])
    first = Path(directory) / name
    yield first
    number = 1
    while (file := first.with_name(f"{first.name}.{number}")).exists():
        yield file
        number += 1
