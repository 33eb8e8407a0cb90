"""How PostgreSQL plans and runs statements."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

# Without parallel workers a request uses one processor of the server, and UNION ALL returns its parts in order. A page
# never needs a whole table, but the planner may prefer to read it if the table is larger than its cache. Compiling a
# statement (JIT) takes longer than running it.
PLANNER_SETTINGS = {"max_parallel_workers_per_gather": "0", "enable_seqscan": "off", "jit": "off"}

# A role or a database may have other values. Then an index finds only some of the payments, times and numbers have
# other forms, a backslash means something else, or a transaction does not see what the holder of a lock has committed.
SESSION_SETTINGS = {
    "gin_fuzzy_search_limit": "0",
    "DateStyle": "ISO",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "default_transaction_isolation": "read committed",
}


@contextmanager
def planned_as_pages() -> Iterator[None]:
    """Plan the statements of a command as those of requests, until the end unless an error occurs.

    SQLite needs no settings.
    """
    settings = PLANNER_SETTINGS if connection.vendor == "postgresql" else {}
    with connection.cursor() as cursor:
        for name, value in settings.items():
            cursor.execute(f"SET {name} = '{value}'")
        yield
        for name in settings:
            cursor.execute(f"RESET {name}")
