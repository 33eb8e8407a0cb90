"""What an index costs an import: those that filters have, and those that were tried for them."""

import random
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg

from benchmarks.transfer import TABLE, copy_out

TRIED = "tried_payments"
OF_WHOM = "organization_id, mode"
NEWEST_FIRST = "created_at DESC, id DESC"
HELD = "(metadata::jsonb) jsonb_path_ops"
WORDS = "(ARRAY[method, sequence_type, amount_currency]::text[])"

INDEXES = {
    "no other": None,
    "`payment_status`": f"({OF_WHOM}, status, {NEWEST_FIRST}) WHERE status <> 'succeeded'",
    "`payment_in_flight`": f"({OF_WHOM}, {NEWEST_FIRST}) WHERE status IN ('authorized', 'open', 'pending')",
    "`payment_customer`": f"({OF_WHOM}, customer_id, {NEWEST_FIRST}) WHERE customer_id <> ''",
    "`payment_description`": f'({OF_WHOM}, (left(description, 64) COLLATE "C"))',
    "`payment_holds`": f"USING gin ({HELD}, {WORDS})",
    "the same, put in at once": f"USING gin ({HELD}, {WORDS}) WITH (fastupdate = off)",
    "metadata alone": f"USING gin ({HELD})",
    "every status": f"({OF_WHOM}, status, {NEWEST_FIRST})",
    "method": f"({OF_WHOM}, method, {NEWEST_FIRST})",
    "`paid_at`": f"({OF_WHOM}, paid_at) WHERE paid_at IS NOT NULL",
    "amount": f"({OF_WHOM}, amount_currency, amount)",
}


def measure_indexes(database_url: str, *, rounds: int) -> Iterator[str]:
    """Yield the lines of a table: PostgreSQL's CPU and the bytes for each payment that is in the payments' table.

    They are copied into a table that has the list's index, the primary key and the constraints, and one index more.
    """
    with tempfile.TemporaryDirectory() as directory, psycopg.connect(database_url, autocommit=True) as connection:
        rows = Path(directory) / "rows"
        copy_out(connection, rows)
        [count] = connection.execute(f"SELECT count(*) FROM {TABLE}").fetchone() or [0]  # noqa: S608
        found: dict[str, list[float]] = {name: [] for name in INDEXES}
        sizes: dict[str, int] = {}
        for _ in range(rounds):
            for name in random.sample(list(INDEXES), len(INDEXES)):
                seconds, sizes[name] = copied(connection, rows, INDEXES[name])
                found[name].append(seconds)
    alone = statistics.median(found["no other"])
    yield "| index | µs of PostgreSQL's a payment | bytes |"
    yield "|---|---|---|"
    for name, index in INDEXES.items():
        microseconds = (statistics.median(found[name]) - (alone if index else 0)) / count * 1e6
        yield f"| {name} | {'+' if index else ''}{microseconds:.1f} | {sizes[name] / count:.0f} |"


def copied(connection: psycopg.Connection[tuple[object, ...]], rows: Path, index: str | None) -> tuple[float, int]:
    """Copy the rows into a table with that index; return the server's seconds, and how large the index is."""
    connection.execute(f"DROP TABLE IF EXISTS {TRIED}")
    connection.execute(f"CREATE TABLE {TRIED} (LIKE {TABLE} INCLUDING CONSTRAINTS, PRIMARY KEY (id))")
    connection.execute(f"CREATE INDEX ON {TRIED} ({OF_WHOM}, {NEWEST_FIRST})")
    if index:
        connection.execute(f"CREATE INDEX tried_index ON {TRIED} {index}")
    connection.execute("CHECKPOINT")
    server = psutil.Process(connection.info.backend_pid)
    before = sum(server.cpu_times()[:2])
    with rows.open("rb") as file, connection.cursor().copy(f"COPY {TRIED} FROM STDIN") as copy:
        while chunk := file.read(2**18):
            copy.write(chunk)
    seconds = sum(server.cpu_times()[:2]) - before
    size = connection.execute("SELECT COALESCE(pg_relation_size(to_regclass('tried_index')), 0)").fetchone()
    return seconds, int(str(size[0])) if size else 0
