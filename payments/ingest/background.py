"""A thread that writes a batch while the import parses the next one.

Only this module uses these undocumented or global functions:

- `inc_thread_sharing` and `dec_thread_sharing` let another thread use a Django connection, and
  `connections[alias] = connection` makes it that thread's connection. Both are undocumented. Django's own
  `LiveServerThread` uses them in the same way.
- `sys.setswitchinterval` applies to all threads of the process, which has one import at a time.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from payments.ingest.batches import Batch

# How long a thread waits for Python's interpreter lock: the writing thread when the server has responded, or a request
# beside an import over the API. Python's default of 5 ms adds up.
SWITCH_SECONDS = 0.0005

CANCEL_EVERY_SECONDS = 1


@dataclass
class BackgroundWriter:
    """Writes one batch at a time in a thread.

    From `submit` until `finish` or `abort`, only the thread may use the database connection.
    """

    write: Callable[[Batch], None]
    executor: ThreadPoolExecutor
    connection: BaseDatabaseWrapper
    writing: Future[None] | None = None
    batch: Batch | None = None
    previous_batch: Batch | None = None

    def submit(self, batch: Batch) -> None:
        """Wait until the previous batch is written, then let the thread write this one.

        Raises the exception with which the previous batch failed.
        """
        # Freeing thousands of rows takes time. Do it now, while the server works; the thread would keep it waiting.
        self.previous_batch = None
        self.finish()
        self.previous_batch, self.batch = self.batch, batch
        self.writing = self.executor.submit(self.write, batch)

    def finish(self) -> None:
        """Wait until the last batch is written. Raises the exception with which it failed."""
        if self.writing is not None:
            self.writing.result()

    def abort(self) -> None:
        """Cancel the current statement, which may wait for a lock, and wait until the thread is idle."""
        while self.writing is not None and wait([self.writing], timeout=0).not_done:
            with suppress(psycopg.OperationalError):  # if the connection is lost, the statement fails anyway
                self.connection.connection.cancel_safe()
            wait([self.writing], timeout=CANCEL_EVERY_SECONDS)


@contextmanager
def quick_switches() -> Iterator[None]:
    """Let the threads of the process wait for each other only a short time."""
    seconds = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(seconds)


@contextmanager
def background_writer(write: Callable[[Batch], None], *, has_thread: bool) -> Iterator[Callable[[Batch], None]]:
    """Yield a function that writes a batch. With a thread, it returns before the thread has written the batch.

    The last batch is written at the end of the block; an exception aborts the writer. SQLite works in this process, so
    a thread would save no time.
    """
    if not (has_thread and connection.vendor == "postgresql"):
        yield write
        return
    this_connection = connections[DEFAULT_DB_ALIAS]  # the thread's `connections` would give it another one
    with ExitStack() as stack:
        stack.enter_context(quick_switches())
        stack.callback(this_connection.dec_thread_sharing)
        this_connection.inc_thread_sharing()
        executor = stack.enter_context(
            ThreadPoolExecutor(1, initializer=connections.__setitem__, initargs=(DEFAULT_DB_ALIAS, this_connection))
        )
        writer = BackgroundWriter(write, executor, this_connection)
        try:
            yield writer.submit
            writer.finish()
        except BaseException:
            writer.abort()
            raise
