"""Cost of indexes for an import: those that filters use, and those that were tried and rejected."""

import random
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg

from benchmarks.transfer import TABLE, copy_out
from payments.search_terms import HasSearchTerms
from payments.search_terms import terms_sql as terms_sql_of_search
from payments.terms import WORD_COLUMNS, terms_sql

TRIAL_TABLE = "trial_payments"
ACCESS_COLUMNS = "organization_id, mode"
NEWEST_FIRST = "created_at DESC, id DESC"
# The index expression of payments/terms.py.
TERMS = terms_sql("id", "organization_id", "mode", "metadata", *WORD_COLUMNS.values())
# The index expression of payments/search_terms.py.
SEARCH_TERMS = terms_sql_of_search(**{name: name for name in HasSearchTerms.columns})
METADATA = "(metadata::jsonb) jsonb_path_ops"
WORDS = "(ARRAY[method, sequence_type, amount_currency]::text[])"

INDEXES = {
    "no further index": None,
    "`payment_status`": f"({ACCESS_COLUMNS}, status, {NEWEST_FIRST}) WHERE status <> 'succeeded'",
    "`payment_in_flight`": f"({ACCESS_COLUMNS}, {NEWEST_FIRST}) WHERE status IN ('authorized', 'open', 'pending')",
    "`payment_customer`": f"({ACCESS_COLUMNS}, customer_id, {NEWEST_FIRST}) WHERE customer_id <> ''",
    "`payment_terms`": f"USING gin (({TERMS}))",
    "the same, without fastupdate": f"USING gin (({TERMS})) WITH (fastupdate = off)",
    "`payment_search`": f"USING gin (({SEARCH_TERMS}))",
    "the start of descriptions": f'({ACCESS_COLUMNS}, (left(description, 64) COLLATE "C"))',
    "metadata and words of all organizations": f"USING gin ({METADATA}, {WORDS})",
    "every status": f"({ACCESS_COLUMNS}, status, {NEWEST_FIRST})",
    "method": f"({ACCESS_COLUMNS}, method, {NEWEST_FIRST})",
    "`paid_at`": f"({ACCESS_COLUMNS}, paid_at) WHERE paid_at IS NOT NULL",
    "amount": f"({ACCESS_COLUMNS}, amount_currency, amount)",
}


def measure_indexes(database_url: str, *, rounds: int) -> Iterator[str]:
    """Yield the lines of a table: PostgreSQL's processor time, and bytes, for each payment of the payments table.

    The payments are copied into a table with the primary key, the constraints, the index of the list, and one further
    index.
    """
    with tempfile.TemporaryDirectory() as directory, psycopg.connect(database_url, autocommit=True) as connection:
        rows = Path(directory) / "rows"
        copy_out(connection, rows)
        [count] = connection.execute(f"SELECT count(*) FROM {TABLE}").fetchone() or [0]  # noqa: S608
        seconds_of: dict[str, list[float]] = {name: [] for name in INDEXES}
        sizes: dict[str, int] = {}
        for _ in range(rounds):
            for name in random.sample(list(INDEXES), len(INDEXES)):
                seconds, sizes[name] = copy_into_trial_table(connection, rows, INDEXES[name])
                seconds_of[name].append(seconds)
    baseline = statistics.median(seconds_of["no further index"])
    yield "| index | CPU µs of PostgreSQL per payment | bytes per payment |"
    yield "|---|---|---|"
    for name, index in INDEXES.items():
        microseconds = (statistics.median(seconds_of[name]) - (baseline if index else 0)) / count * 1e6
        yield f"| {name} | {'+' if index else ''}{microseconds:.1f} | {sizes[name] / count:.0f} |"


def copy_into_trial_table(
    connection: psycopg.Connection[tuple[object, ...]], rows: Path, index: str | None
) -> tuple[float, int]:
    """Copy the rows into a table with a further index. Return the server's CPU seconds and the size of the index."""
    connection.execute(f"DROP TABLE IF EXISTS {TRIAL_TABLE}")
    connection.execute(f"CREATE TABLE {TRIAL_TABLE} (LIKE {TABLE} INCLUDING CONSTRAINTS, PRIMARY KEY (id))")
    connection.execute(f"CREATE INDEX ON {TRIAL_TABLE} ({ACCESS_COLUMNS}, {NEWEST_FIRST})")
    if index:
        connection.execute(f"CREATE INDEX trial_index ON {TRIAL_TABLE} {index}")
    connection.execute("CHECKPOINT")
    server = psutil.Process(connection.info.backend_pid)
    before = sum(server.cpu_times()[:2])
    with rows.open("rb") as file, connection.cursor().copy(f"COPY {TRIAL_TABLE} FROM STDIN") as copy:
        while chunk := file.read(2**18):
            copy.write(chunk)
    seconds = sum(server.cpu_times()[:2]) - before
    size = connection.execute("SELECT COALESCE(pg_relation_size(to_regclass('trial_index')), 0)").fetchone()
    return seconds, int(str(size[0])) if size else 0
