"""The metrics files: every process counts in files of its own, and a scrape adds up the files of all processes.

This module relies on prometheus_client's names for these files, which it does not document: `counter_PID.db`,
`histogram_PID.db` and `gauge_MODE_PID.db`.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from prometheus_client.multiprocess import mark_process_dead

from payments.runtime.directory import prepare_runtime_directory
from payments.service.telemetry import METRICS_DIRECTORY

# The kinds of files in which the next process continues to count.
CONTINUED = ("counter", "histogram", "gauge_max")


def create_files(sizes: Mapping[str, int]) -> None:
    """Create this process's files of these kinds, and allocate their disk space.

    prometheus_client maps its files into memory. If a full disk cannot store a mapped page, writing to the page kills
    the process.

    :raises OSError: if the directory cannot be used, or if the disk is full
    """
    prepare_runtime_directory()
    METRICS_DIRECTORY.mkdir(mode=0o700, exist_ok=True)
    remove_dead_gauges()
    mark_process_dead(os.getpid(), METRICS_DIRECTORY)  # an earlier process may have had the same ID
    for kind, size in sizes.items():
        path = METRICS_DIRECTORY / f"{kind}_{os.getpid()}.db"
        if kind in CONTINUED and not path.exists():
            take_over(kind, path)
        allocate(path, size)


def take_over(kind: str, path: Path) -> None:
    """Rename the file of an ended process, if there is one, so that this process continues to count in it.

    So there are never more files than processes that ran at the same time. Renaming is atomic: only one process can
    take over a file, and a scrape finds the file under one of its names.
    """
    for old in files_of_ended_processes(f"{kind}_*.db"):
        with suppress(FileNotFoundError):  # another process has taken it over
            old.rename(path)
            return


def allocate(path: Path, size: int) -> None:
    """Give a file this size. A new file appears when it is complete: a scrape must not read a shorter one."""
    draft = path if path.exists() else path.with_suffix(".new")
    try:
        with draft.open("ab") as file:
            file.write(bytes(max(0, size - file.tell())))  # macOS has no posix_fallocate
    except OSError:
        path.with_suffix(".new").unlink(missing_ok=True)
        raise
    draft.rename(path)


def remove_old_files() -> None:
    """Remove the files of processes that have ended, except gauges of mode `max`: the last successful import."""
    remove_dead_gauges()
    for pattern in ("counter_*", "histogram_*", "*.new"):
        for path in files_of_ended_processes(pattern):
            path.unlink(missing_ok=True)


def remove_dead_gauges() -> None:
    """Remove the gauge files of ended processes, in the modes `livemin`, `livesum` and `livemostrecent`."""
    for path in files_of_ended_processes("gauge_live*.db"):
        with suppress(FileNotFoundError):  # another process has removed it meanwhile
            mark_process_dead(process_id(path), METRICS_DIRECTORY)


def files_of_ended_processes(pattern: str) -> list[Path]:
    return [path for path in METRICS_DIRECTORY.glob(pattern) if not is_running(process_id(path))]


def process_id(path: Path) -> int:
    return int(path.stem.rpartition("_")[2])


def is_running(pid: int) -> bool:
    """Return whether this user has a process with this ID."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
