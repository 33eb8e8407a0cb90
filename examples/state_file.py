"""The file that has the position of a program, and the lock that lets only one run use it."""

import fcntl
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from apis import Failure
from pages import printable


@dataclass
class State:
    """The position of the runs that write one source to one destination.

    While all payments are read, `cursor` is the next page. The service has refused the payments in `refused`, or they
    could not be converted.
    """

    file: Path
    source: str
    until: datetime | None = None
    cursor: str | None = None
    refused: set[str] = field(default_factory=set)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with Path(f"{self.file}.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                sys.stderr.write(f"Another run uses {printable(str(self.file))}.\n")
                sys.exit(os.EX_TEMPFAIL)
            yield

    def load(self) -> None:
        """Read the file, if it exists."""
        if not self.file.exists():
            return
        file = printable(str(self.file))
        try:
            values = json.loads(self.file.read_bytes())
            source, self.until = values["source"], datetime.fromisoformat(values["until"])
            self.cursor, self.refused = optional_text(values["cursor"]), set(values["refused"])
        except (ValueError, LookupError, TypeError, RecursionError):
            raise Failure(f"{file} is damaged. Delete it to read all payments again.") from None
        if source != self.source:
            raise Failure(f"{file} belongs to {printable(str(source))}. Use another file for {self.source}.")

    def save(self, until: datetime, *, refused: Iterable[str], cursor: str | None = None) -> None:
        """Replace the file, so that it always has the old or the new state."""
        self.until, self.cursor, self.refused = until, cursor, set(refused)
        values = {"source": self.source, "until": until.isoformat(), "cursor": cursor, "refused": sorted(self.refused)}
        new = Path(f"{self.file}.new")
        with new.open("w") as file:
            json.dump(values, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.file)
        directory = os.open(self.file.absolute().parent, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)


def optional_text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError
    return value
