"""Bytes per payment of each table and index."""

from typing import Any

import psycopg

from benchmarks.database import LoadedDatabase
from benchmarks.figures import log_table
from benchmarks.options import Options

# A table with its TOAST table, and each of its indexes.
SIZES = """
SELECT relname, CASE relkind WHEN 'r' THEN pg_table_size(oid) ELSE pg_relation_size(oid) END FROM pg_class
WHERE relkind IN ('r', 'i') AND relname ~ '^payment' AND pg_table_size(oid) > 0 ORDER BY relname
"""


def measure_sizes(options: Options, database: LoadedDatabase) -> dict[str, Any]:
    with psycopg.connect(database.url) as connection:
        sizes = {name: round(size / options.rows, 1) for name, size in connection.execute(SIZES)}
    sizes["all"] = round(sum(sizes.values()), 1)
    log_table([{"relation": name, "bytes per payment": size} for name, size in sizes.items()])
    return {"sizes": sizes}
