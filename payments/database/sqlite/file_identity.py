"""The identity of a file: its device and inode numbers."""

import os
from pathlib import Path
from typing import TypeAlias

# The device and inode numbers. A file that replaces another under the same path has different ones.
Identity: TypeAlias = tuple[int, int]


def find_identity(path: Path) -> Identity | None:
    """Return the identity of the file at this path; None if there is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116  runs for every request, and Path.stat takes longer
    except OSError:
        return None
    return status.st_dev, status.st_ino
