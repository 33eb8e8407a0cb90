"""Threads with their own database connection, and whether the database lets one wait."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from django.db import connection

from tests.support.sql import fetch_value
from tests.support.waiting import wait_until


def in_thread(function: Callable[[], object]) -> threading.Thread:
    """Return a thread that calls a function with its own database connection."""

    def run() -> None:
        with closing(connection):
            function()

    return threading.Thread(target=run)


def wait_until_blocked(thread: threading.Thread) -> None:
    """Wait until a started thread waits for a lock of PostgreSQL. Fail if the thread ends without it."""
    wait_until(lambda: fetch_value("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)") or not thread.is_alive())
    assert thread.is_alive()


def most_at_once(occupants: Sequence[tuple[Callable[[], None], Callable[[], None]]]) -> int:
    """Let each occupant enter and leave repeatedly, in a thread of its own. Return how many were inside at once."""
    lock = threading.Lock()
    inside, most = 0, 0

    def occupy(enter: Callable[[], None], leave: Callable[[], None]) -> None:
        nonlocal inside, most
        for _ in range(50):
            enter()
            with lock:
                inside += 1
                most = max(most, inside)
            threading.Event().wait(0.0001)
            with lock:
                inside -= 1
            leave()

    with ThreadPoolExecutor(len(occupants)) as pool:
        for future in [pool.submit(occupy, *occupant) for occupant in occupants]:
            future.result(timeout=60)
    return most
