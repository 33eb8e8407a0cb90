"""RUNTIME_DIRECTORY: the private directory of the service for rate limits and metrics."""

import os
import stat
from pathlib import Path

from payments.conf import conf


class RuntimeDirectoryError(OSError):
    """RUNTIME_DIRECTORY cannot be used. The message says why, and what to do."""


def prepare_runtime_directory() -> Path:
    """Return RUNTIME_DIRECTORY. If it does not exist, create it, and its parent if that does not exist either.

    :raises RuntimeDirectoryError: if it cannot be created, or if another user can read or write it
    """
    path: Path = conf.RUNTIME_DIRECTORY
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise RuntimeDirectoryError(
            f"RUNTIME_DIRECTORY {path} cannot be created: {error.strerror}. "
            "Set it to a directory that this user can create."
        ) from error
    if not stat.S_ISDIR(status.st_mode):
        raise RuntimeDirectoryError(
            f"RUNTIME_DIRECTORY {path} is a symbolic link. Set it to the directory that the link points to."
        )
    if status.st_uid != os.geteuid():
        raise RuntimeDirectoryError(
            f"RUNTIME_DIRECTORY {path} belongs to another user. Run this as that user, or set it to another directory."
        )
    if status.st_mode & 0o077:
        raise RuntimeDirectoryError(f"RUNTIME_DIRECTORY {path} is accessible to other users. Run: chmod 700 {path}")
    return path
