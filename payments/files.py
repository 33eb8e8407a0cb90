"""Which file has a name."""

import os
from pathlib import Path
from typing import TypeAlias

# Its device and its number there: another file of the same name has others.
Identity: TypeAlias = tuple[int, int]


def find_identity(path: Path) -> Identity | None:
    """Return that of the file which has this name now; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116  in every request: Path's own takes longer
    except OSError:
        return None
    return found.st_dev, found.st_ino
