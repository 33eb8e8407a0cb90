"""Threads with their own database connection, and whether the database lets one wait."""

import threading
from collections.abc import Callable
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
