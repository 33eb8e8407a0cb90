"""Several statements in one round trip, in the pipeline mode of libpq.

The client sends all statements before it waits for the first result. A synchronization point follows each statement, so
an error in one statement does not affect the others.

psycopg's `get_result()` holds Python's global lock while it waits, and has no time limit. So this module waits for the
socket, which releases the lock, and asks libpq for a result only when libpq has all of it.
"""

import select
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from payments.runtime.process import process

# Sends one statement, for example with `PGconn.send_query_prepared`.
Send = Callable[[], None]


class Pipeline:
    """Exchanges statements and results on one connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.input = select.poll()
        self.input.register(connection.fileno(), select.POLLIN)
        self.input_or_space = select.poll()
        self.input_or_space.register(connection.fileno(), select.POLLIN | select.POLLOUT)

    def exchange(self, sends: Sequence[Send]) -> Iterator[PGresult]:
        """Call each function, which sends one statement, and yield the result of each statement as it arrives.

        Iterate to the end. If the exchange fails or stops, the connection is closed, because nothing else could use it.

        :raises psycopg.OperationalError: the connection failed, or the deadline has passed
        """
        pgconn = self.connection.pgconn
        try:
            pgconn.enter_pipeline_mode()
            for send in sends:
                send()
                pgconn.pipeline_sync()
            if pgconn.flush():
                self.send_rest(pgconn)
            self.wait(self.input)
            for _ in sends:
                yield self.receive(pgconn)
            pgconn.exit_pipeline_mode()
        except BaseException:
            self.connection.close()
            pgconn.finish()  # psycopg does not close a broken connection, which would remain in pipeline mode
            raise

    def run(self, send: Send) -> PGresult:
        """Call a function that sends one statement, and return its result. See `exchange` for the errors."""
        (result,) = self.exchange([send])
        return result

    def wait(self, socket: select.poll) -> None:
        """Wait for the socket until the deadline, and read what has arrived."""
        deadline = process.deadline
        seconds = deadline.wait_seconds
        if not socket.poll(None if seconds is None else seconds * 1000):
            deadline.fail_wait()
        self.connection.pgconn.consume_input()

    def send_rest(self, pgconn: PGconn) -> None:
        """Wait until everything is sent. Read meanwhile, because the server may wait for that."""
        while pgconn.flush():
            self.wait(self.input_or_space)

    def receive(self, pgconn: PGconn) -> PGresult:
        """Return the next statement's result, which null and a synchronization point follow."""
        while pgconn.is_busy():
            self.wait(self.input)
        result = pgconn.get_result()
        end = pgconn.get_result()  # libpq has it as soon as it has the result
        while pgconn.is_busy():
            self.wait(self.input)
        synchronization = pgconn.get_result()
        if result and not end and synchronization and synchronization.status == ExecStatus.PIPELINE_SYNC:
            return result
        raise psycopg.OperationalError(pgconn.get_error_message() or "The server sent an unexpected result.")
