"""The SQLite backend. Django requires a module named `base` with a class named `DatabaseWrapper`.

It overrides `get_new_connection` and `is_usable` of Django's backend, and calls `is_in_memory_db`. These methods are
not documented. Django has no public API for the time limits, the private file and the file check.
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base, features

from payments.database.cursors import InstrumentedDatabaseWrapper
from payments.runtime import time_limits
from payments.runtime.process import process

# SQLite checks the deadline after so many steps of its virtual machine. They take less than a millisecond.
STEPS_BETWEEN_CHECKS = 10_000


class Connection(sqlite3.Connection):
    """Closes itself when it is dropped. Django drops an open one if its first statement shows an unusable file."""

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # it could not be opened
            self.close()


class DatabaseFeatures(features.DatabaseFeatures):
    """Django's, without its query for JSON: since Django 6, each command would run it, and need the file."""

    supports_json_field = True


class DatabaseWrapper(InstrumentedDatabaseWrapper, base.DatabaseWrapper):
    """Django's backend with time limits for requests. Requests never create a missing file or read a replaced one."""

    features_class = DatabaseFeatures

    @property
    def path(self) -> Path:
        return Path(self.settings_dict["NAME"])

    def get_connection_params(self) -> dict[str, Any]:
        parameters = {**super().get_connection_params(), "factory": Connection}
        if process.deadline.is_active:
            existing = f"{self.path.absolute().as_uri()}?mode=rw"
            return {**parameters, "database": existing, "timeout": time_limits.LOCK.seconds}
        return parameters

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if not process.deadline.is_active and not self.is_in_memory_db():
            create_private_file(self.path)
        self.file = find_identity(self.path)
        connection = super().get_new_connection(conn_params)
        connection.set_progress_handler(deadline_has_passed, STEPS_BETWEEN_CHECKS)
        return connection

    def is_usable(self) -> bool:
        """Return whether the open file still has its name. A restored backup replaces the file."""
        return self.file == find_identity(self.path)


def deadline_has_passed() -> bool:
    """Return whether SQLite should end the statement that runs in this thread."""
    return process.deadline.remaining_seconds <= 0


def create_private_file(path: Path) -> None:
    """Create an empty file that only its owner can read, if there is no file. SQLite would let other users read it.

    An existing file is never opened: closing it would release the locks of this process's other connections.
    """
    target = Path(os.path.realpath(path))  # a link may lead to a missing file
    with suppress(OSError):  # SQLite reports a file that cannot be created
        target.touch(mode=0o600, exist_ok=False)


def find_identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode numbers of a file; None if there is none. A file that replaces it has others."""
    try:
        status = os.stat(path)  # noqa: PTH116  runs for every request, and Path.stat takes longer
    except OSError:
        return None
    return status.st_dev, status.st_ino
