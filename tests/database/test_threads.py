"""Each thread has its own connections, which are closed when it ends."""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from payments.runtime.deadlines import CHECK_INTERVAL_SECONDS
from payments.runtime.process import process
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def run_in_thread(work: Callable[[], Any]) -> Any:
    """Return the result of `work` after its thread has ended."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def connect_in_request() -> int:
    """Open the thread's connection as a request does, and return the ID of its process on the server."""
    with process.deadlines.database:
        connection.ensure_connection()
    time.sleep(3 * CHECK_INTERVAL_SECONDS)  # the watchdog sees the thread's deadline
    return int(connection.connection.info.backend_pid)


def test_connections_of_an_ended_thread_are_closed(no_garbage_collection: None) -> None:
    connection.ensure_connection()
    backend_pid = run_in_thread(connect_in_request)

    def is_open() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [backend_pid])
            return bool(cursor.fetchall())

    wait_until(lambda: not is_open())
