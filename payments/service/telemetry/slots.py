"""A machine's processes, and the files in which each of them counts: it has a number of its own as long as it lives.

Counters outlive their process, and the next that takes its number counts on: so nothing that was counted is lost,
and there are never more files than there were processes at once. Whether a process lives is told by the lock that it
has on its counters, which ends with it, whatever ends it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from payments.runtime.directory import prepare_runtime_directory

# Written to the disk before anything is mapped: a process that maps what a full disk cannot take is killed.
FILE_BYTES = 2**17

COUNTERS = "counter"
OF_THE_LIVING = ("gauge_livemin", "gauge_livemostrecent", "gauge_livesum")
FORGOTTEN = (COUNTERS, "histogram", *OF_THE_LIVING)
KEPT = ("gauge_max",)

# Where a file says how much of it is in use.
USE = bytes(8)

locks: list[int] = []


def directory() -> Path:
    """Return that of the files: this deployment's own, made where it is missing.

    :raises OSError: where it cannot be had
    """
    path = prepare_runtime_directory() / "metrics"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def take(directory: Path) -> int:
    """Return a number that no other living process has, and make its files.

    :raises OSError: where there is no room for them
    """
    for number in count():
        lock = find_lock(directory, number)
        if lock is None:
            continue
        locks.append(lock)
        for kind in (*FORGOTTEN, *KEPT):
            with opened(directory / f"{kind}_{number}.db") as file:
                os.posix_fallocate(file, 0, FILE_BYTES)
                if kind in OF_THE_LIVING:
                    os.pwrite(file, USE, 0)
        return number
    raise AssertionError("there is always a next number")


def readable(directory: Path) -> list[str]:
    """Return the files that count: all but the gauges of processes that have ended."""
    return [
        str(file)
        for file in directory.glob("*_*.db")
        if file.stat().st_size and (kind(file) not in OF_THE_LIVING or is_alive(directory, number(file)))
    ]


def forget(directory: Path) -> None:
    """Begin anew: forget what processes have counted that have ended."""
    for counters in directory.glob(f"{COUNTERS}_*.db"):
        lock = find_lock(directory, number(counters))
        if lock is None:
            continue
        for each in FORGOTTEN:
            with opened(directory / f"{each}_{number(counters)}.db") as file:
                if os.fstat(file).st_size:
                    os.pwrite(file, USE, 0)
        os.close(lock)


def is_alive(directory: Path, number: int) -> bool:
    lock = find_lock(directory, number)
    if lock is not None:
        os.close(lock)
    return lock is None


def find_lock(directory: Path, number: int) -> int | None:
    """Return the descriptor of that number's lock, for as long as it is open; None where a living process has it."""
    lock = os.open(directory / f"{COUNTERS}_{number}.db", os.O_RDWR | os.O_CREAT, mode=0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


@contextmanager
def opened(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT, mode=0o600)
    try:
        yield file
    finally:
        os.close(file)


def kind(file: Path) -> str:
    return file.stem.rpartition("_")[0]


def number(file: Path) -> int:
    return int(file.stem.rpartition("_")[2])
