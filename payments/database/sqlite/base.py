"""The database backend, where Django looks for it."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base

from payments.database.cursors import ObservedCursors
from payments.runtime.deadlines import Line, waits
from payments.runtime.files import find_identity

# For how long a request waits for whoever has locked the file.
REQUEST_BUSY_SECONDS_MAX = 1


@dataclass(frozen=True)
class Statements(Line):
    """Those of a connection, which end when they are told to."""

    connection: sqlite3.Connection

    def cut(self) -> None:
        self.connection.interrupt()


class DatabaseWrapper(ObservedCursors, base.DatabaseWrapper):
    """Lets no request wait without end, read a file that is no longer there, or make one that is missing."""

    @property
    def path(self) -> Path:
        return Path(self.settings_dict["NAME"])

    def get_connection_params(self) -> dict[str, Any]:
        parameters = super().get_connection_params()
        if waits.database.is_on:
            existing = f"{self.path.absolute().as_uri()}?mode=rw"
            return {**parameters, "database": existing, "timeout": REQUEST_BUSY_SECONDS_MAX}
        return parameters

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        self.file = find_identity(self.path)
        connection = super().get_new_connection(conn_params)
        waits.database.keep(Statements(connection), name=self.alias)
        return connection

    def _close(self) -> None:
        waits.database.keep(None, name=self.alias)
        super()._close()  # type: ignore[misc]  # the stubs leave it out

    def is_usable(self) -> bool:
        """Tell whether the file that was opened still has its name: another may have been put into its place."""
        return self.file == find_identity(self.path)
