"""Back up a SQLite database while it is in use."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

# The progress is reported, and Ctrl-C is handled, after so many pages.
STEP_PAGES = 1000


class Damaged(Exception):
    """The copy has failed its integrity check, so the database is damaged as well. The message locates the damage."""


def back_up(database: Path, *, to: Path, on_progress: Callable[[int, int], None], step_pages: int = STEP_PAGES) -> None:
    """Copy the committed state of `database` to the new file `to`, which only its owner can read.

    The file gets its name after all of it is written and verified. `on_progress` is called after each step with the
    number of copied pages and the number of all pages.

    :raises FileExistsError: if `to` exists
    :raises OSError: if the file cannot be created
    :raises sqlite3.Error: if the database cannot be read or the copy cannot be written
    :raises Damaged: if the copy fails its integrity check
    """
    if to.exists():
        raise FileExistsError(errno.EEXIST, "exists already", str(to))
    with temporary_file(to) as path:
        with connect(database) as source, connect(path) as copy:
            # All steps read the same state within this transaction. Without it, a commit of an import would restart
            # the copying.
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            source.backup(copy, pages=step_pages, progress=lambda _, left, pages: on_progress(pages - left, pages))
            verify(copy)
        sync(path)
        path.rename(to)
        sync(to.parent)


@contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """Create a file next to `path`. Unless the block renames it, it is removed with all files that SQLite adds."""
    file = path.with_name(f"{path.name}.{os.getpid()}.draft")
    file.touch(mode=0o600, exist_ok=False)
    try:
        yield file
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            file.with_name(f"{file.name}{suffix}").unlink(missing_ok=True)


@contextmanager
def connect(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)) as connection:
        yield connection


def verify(copy: sqlite3.Connection) -> None:
    """Run SQLite's integrity check, without the CHECK constraints, which would double its duration.

    :raises Damaged: if the copy is damaged
    """
    copy.execute("PRAGMA ignore_check_constraints = ON")
    errors = [error for (error,) in copy.execute("PRAGMA integrity_check(1)")]
    if errors != ["ok"]:
        raise Damaged(errors[0])


def sync(path: Path) -> None:
    """Write a file or a directory to the disk, so that it survives a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
