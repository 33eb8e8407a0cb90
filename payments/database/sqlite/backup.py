"""A copy of a SQLite database, as it was at one moment, while others read and write."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

# So many at a time, that somebody hears how far it is and Ctrl-C is heeded.
STEP_PAGES = 1000


class Damaged(Exception):
    """The copy is not whole, and then the database is hardly either; the message says where."""


def back_up(database: Path, *, to: Path, on_progress: Callable[[int, int], None]) -> None:
    """Copy `database` to a new file, its owner's alone, which has its name once all of it is written and verified.

    `on_progress` is told how many pages are copied, and of how many.

    :raises FileExistsError: nothing is ever overwritten
    :raises sqlite3.Error: the database cannot be read, or the copy not written
    :raises Damaged: the copy has been verified in vain
    """
    if to.exists():
        raise FileExistsError(errno.EEXIST, "exists already", str(to))
    with draft(to) as path:
        with opened(database) as source, opened(path) as copy:
            # While this transaction lasts, every step sees the same state; without it an import's commit would have
            # the copying begin anew.
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            source.backup(copy, pages=STEP_PAGES, progress=lambda _, left, of: on_progress(of - left, of))
            verify(copy)
        written_out(path)
        path.rename(to)
        written_out(to.parent)


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """Make a file beside `path`; unless it has been renamed by then, nothing is left of it."""
    file = path.with_name(f"{path.name}.{os.getpid()}.draft")
    file.touch(mode=0o600, exist_ok=False)
    try:
        yield file
    finally:
        for each in (file, *(file.with_name(f"{file.name}{suffix}") for suffix in ("-journal", "-wal", "-shm"))):
            each.unlink(missing_ok=True)


@contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a file that exists."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)) as connection:
        yield connection


def verify(copy: sqlite3.Connection) -> None:
    copy.execute("PRAGMA ignore_check_constraints = ON")  # rows' forms would take as long again
    found = [words for (words,) in copy.execute("PRAGMA integrity_check(1)")]
    if found != ["ok"]:
        raise Damaged(found[0])


def written_out(path: Path) -> None:
    """Have what is at `path` outlive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
