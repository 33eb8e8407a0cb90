"""Threads with their own database connection, and whether the database lets one wait."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TypeVar

from django.db import connection, transaction

from tests.support.sql import fetch_value
from tests.support.waiting import SECONDS_MAX, wait_until

Result = TypeVar("Result")

# A lock of a transaction names no database. A connection that waits for one also holds locks of tables, which do.
WAITING = """
    SELECT count(DISTINCT pid) FROM pg_locks AS waiting JOIN pg_locks AS held USING (pid)
    WHERE NOT waiting.granted AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

# The rows are locked on the workers of Citus, and the coordinator knows which transactions wait there.
WAITING_ON_CITUS = "SELECT count(DISTINCT waiting_gpid) FROM citus_lock_waits"


def in_thread(function: Callable[[], object]) -> threading.Thread:
    """Return a thread that calls a function with its own database connection."""

    def run() -> None:
        with closing(connection):
            function()

    return threading.Thread(target=run)


@contextmanager
def held_lock(table: str) -> Iterator[threading.Thread]:
    """Hold a lock against writers in another thread: on PostgreSQL the lock of the table, on SQLite the only lock."""
    locked, released = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE")
            locked.set()
            released.wait(timeout=SECONDS_MAX)

    holder = in_thread(hold)
    holder.start()
    try:
        assert locked.wait(timeout=SECONDS_MAX)
        yield holder
    finally:
        released.set()
        holder.join()


def wait_until_blocked(*threads: threading.Thread) -> None:
    """Wait until all these started threads wait for a lock of PostgreSQL. Fail if one of them ends without it.

    A thread can also wait for the response to a request that waits. No other connection to the database may wait.
    """

    def are_alive() -> bool:
        return all(thread.is_alive() for thread in threads)

    waiting = WAITING_ON_CITUS if os.environ["TEST_DATABASE"] == "citus" else WAITING
    wait_until(lambda: fetch_value(waiting) >= len(threads) or not are_alive())
    assert are_alive()


def call_while_held(hold: Callable[[], object], *functions: Callable[[], Result]) -> list[Result]:
    """Call `hold` in a transaction, and these functions in threads, which must wait for its locks. Then roll it back.

    Return the results of the functions in the order in which they end.
    """
    results: list[Result] = []

    def collect(function: Callable[[], Result]) -> None:
        results.append(function())

    threads = [in_thread(partial(collect, function)) for function in functions]
    with transaction.atomic():
        hold()
        for thread in threads:
            thread.start()
        wait_until_blocked(*threads)
        transaction.set_rollback(True)
    for thread in threads:
        thread.join()
    return results
