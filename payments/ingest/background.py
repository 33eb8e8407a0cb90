"""A thread that writes a batch while the import parses the next one.

Only this module uses these undocumented or global functions:

- `inc_thread_sharing` and `dec_thread_sharing` let another thread use a Django connection, and
  `connections[alias] = connection` makes it that thread's connection. Both are undocumented. Django's own
  `LiveServerThread` uses them in the same way.
- `sys.setswitchinterval` applies to all threads of the process. An import is the only work of its process.
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

# How long the writing thread waits for Python's interpreter lock when the server has responded. Python's default of
# 5 ms adds up over many statements.
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
def background_writer(write: Callable[[Batch], None]) -> Iterator[Callable[[Batch], None]]:
    """Yield a function that writes a batch. On PostgreSQL, it returns before a thread has written the batch.

    The last batch is written at the end of the block; an exception aborts the writer. SQLite works in this process, so
    a thread would save no time.
    """
    if connection.vendor != "postgresql":
        yield write
        return
    this_connection = connections[DEFAULT_DB_ALIAS]  # the thread's `connections` would give it another one
    with ExitStack() as stack:
        stack.callback(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(SWITCH_SECONDS)
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
