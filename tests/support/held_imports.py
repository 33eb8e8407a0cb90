"""Imports that a test holds open: their payments are written, but not committed yet."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader, FileIO
from threading import Condition
from typing import IO

from django.test import override_settings

from payments.ingest import ImportResult, Source, import_payments
from payments.runtime.hooks import Hook, Progress
from tests.support.connecting import connected_to
from tests.support.hooks import registered
from tests.support.waiting import SECONDS_MAX

# An import writes its records as soon as it has read so many.
BATCH_RECORDS = 2


class Batches(Hook):
    """Counts the batches that imports have written."""

    def __init__(self) -> None:
        self.written = 0
        self.condition = Condition()

    def import_progressed(self, progress: Progress) -> None:
        with self.condition:
            self.written += 1
            self.condition.notify_all()

    def wait_for(self, written: int) -> None:
        with self.condition:
            assert self.condition.wait_for(lambda: self.written >= written, SECONDS_MAX)


class Pipe(BufferedReader):
    """Returns what has arrived. The base class would wait for as many bytes as an import reads at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        return self.read1(-1 if size is None else size)


@dataclass(eq=False)
class HeldImport:
    """An import in a thread, which reads records from a pipe. `rows` are the test's notes of its payments."""

    stream: IO[bytes]
    batches: Batches
    result: Future[ImportResult]
    rows: dict[str, str] = field(default_factory=dict)

    def write(self, records: Sequence[bytes]) -> None:
        """Write payments, without a commit."""
        assert len(records) == BATCH_RECORDS
        written = self.batches.written
        self.stream.write(b"".join(record + b"\n" for record in records))
        self.stream.flush()
        self.batches.wait_for(written + 1)

    def commit(self) -> None:
        assert self.end().refused == 0

    def fail(self) -> None:
        """End the import with an invalid record, so that nothing is written."""
        self.stream.write(b"nonsense\n")
        assert self.end().refused == 1

    def end(self) -> ImportResult:
        self.stream.close()
        return self.result.result(SECONDS_MAX)


class HeldImports:
    """Starts imports into a database, each in a thread of its own."""

    def __init__(self, url: str, pool: ThreadPoolExecutor) -> None:
        self.url = url
        self.pool = pool
        self.batches = Batches()
        self.started: list[HeldImport] = []

    def start(self) -> HeldImport:
        read_end, write_end = os.pipe()
        result = self.pool.submit(self.run, read_end)
        stream = open(write_end, "wb")  # noqa: PTH123, SIM115
        self.started.append(HeldImport(stream, self.batches, result))
        return self.started[-1]

    def end_all(self) -> None:
        """End the imports that a failed test has left open."""
        for held in self.started:
            held.stream.close()
            held.result.exception(SECONDS_MAX)
        self.started.clear()

    def run(self, read_end: int) -> ImportResult:
        with connected_to(self.url), Pipe(FileIO(read_end)) as stream:
            return import_payments([Source("held", stream)], on_refused=lambda location, error: None)


@contextmanager
def held_imports(url: str) -> Iterator[HeldImports]:
    """Yield the object that starts imports, which write their records in small batches."""
    with ThreadPoolExecutor() as pool:
        imports = HeldImports(url, pool)
        with registered(imports.batches), override_settings(PAYMENTS_IMPORT_BATCH_RECORDS=BATCH_RECORDS):
            try:
                yield imports
            finally:
                imports.end_all()
