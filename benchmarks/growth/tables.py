"""The payments table, whole and in partitions. Each variant has its own schema, which the search path selects."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from benchmarks.growth.dataset import SPAN, UNTIL

TABLE = "payments_payment"
PLAIN_SCHEMA = "public"
HASHES = 16


@dataclass(frozen=True)
class Table:
    """A variant of the payments table."""

    name: str
    schema: str
    key: str = "id"  # the primary key, which must contain the partition key
    partition_by: str = ""
    partitions: tuple[str, ...] = ()


def months(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield the start and the end of each month, up to the month that contains `until`."""
    start = since.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while start <= until:
        end = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
        yield start, end
        start = end


PLAIN = Table("whole", PLAIN_SCHEMA)
BY_ORGANIZATION = Table(
    f"{HASHES} by organization",
    "by_organization",
    "id, organization_id",
    "HASH (organization_id)",
    tuple(f"WITH (MODULUS {HASHES}, REMAINDER {number})" for number in range(HASHES)),
)
BY_MONTH = Table(
    "by month",
    "by_month",
    "id, created_at",
    "RANGE (created_at)",
    tuple(f"FROM ('{start}') TO ('{end}')" for start, end in months(UNTIL - SPAN, UNTIL)),
)
TABLES = (PLAIN, BY_ORGANIZATION, BY_MONTH)


def create(table: Table) -> None:
    """Create a partitioned copy of the payments table, and insert the same payments in their order.

    As in production, the indexes exist before the payments.
    """
    name = f"{table.schema}.{TABLE}"
    execute(f"CREATE SCHEMA {table.schema}")
    execute(
        f"CREATE TABLE {name} (LIKE {PLAIN_SCHEMA}.{TABLE} INCLUDING ALL EXCLUDING INDEXES) "
        f"PARTITION BY {table.partition_by}"
    )
    for number, bounds in enumerate(table.partitions):
        execute(f"CREATE TABLE {table.schema}.part_{number} PARTITION OF {name} FOR VALUES {bounds}")
    execute(f"ALTER TABLE {name} ADD CONSTRAINT {TABLE}_pkey PRIMARY KEY ({table.key})")
    for definition in other_indexes():
        execute(definition.replace(f" ON {PLAIN_SCHEMA}.", f" ON {table.schema}."))
    execute(f"INSERT INTO {name} SELECT * FROM {PLAIN_SCHEMA}.{TABLE} ORDER BY id")  # noqa: S608
    execute(
        f"ALTER TABLE {name} ADD FOREIGN KEY (organization_id) "
        f"REFERENCES {PLAIN_SCHEMA}.payments_organization DEFERRABLE INITIALLY DEFERRED"
    )
    execute(f"VACUUM ANALYZE {name}")


def other_indexes() -> list[str]:
    """Return the definitions of all indexes except the primary key."""
    rows = execute(
        "SELECT indexdef FROM pg_indexes WHERE schemaname = %s AND tablename = %s AND indexname <> %s",
        [PLAIN_SCHEMA, TABLE, f"{TABLE}_pkey"],
    )
    return [definition for (definition,) in rows]


@contextmanager
def selected(table: Table) -> Iterator[None]:
    """Let the service's statements use this table, and plan them as for a request."""
    execute("SET max_parallel_workers_per_gather TO 0")
    execute(f"SET search_path TO {table.schema}, {PLAIN_SCHEMA}")
    try:
        yield
    finally:
        execute("RESET search_path")


def leaves(table: Table, relation: str = TABLE) -> list[str]:
    """Return the partitions of a table, or of one of its indexes. A relation without partitions is its only one."""
    name = f"{table.schema}.{relation}"
    rows = execute("SELECT relid::regclass::text FROM pg_partition_tree(%s) WHERE isleaf", [name])
    return [partition for (partition,) in rows] or [name]


def execute(sql: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows. A statement without a result has none."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall() if cursor.description else []
