"""Which file has a name, and where this deployment's temporary ones are."""

import os
import stat
import tempfile
from pathlib import Path
from typing import TypeAlias

from django.utils.crypto import salted_hmac

# Its device and its number there: another file of the same name has others.
Identity: TypeAlias = tuple[int, int]


def find_identity(path: Path) -> Identity | None:
    """Return that of the file which has this name now; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116  in every request: Path's own takes longer
    except OSError:
        return None
    return found.st_dev, found.st_ino


def private_directory() -> Path:
    """Return a directory for temporary files that this deployment's processes share and no other user can enter.

    :raises PermissionError: where somebody else was there first
    """
    deployment = salted_hmac("payments.runtime.rate_limits", "").hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"payments-{os.geteuid()}-{deployment}"
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(f"{path} is not a directory of this user's alone")
    return path
