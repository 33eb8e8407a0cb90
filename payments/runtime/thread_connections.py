"""The database connections of the request that a thread runs."""

import threading
from collections.abc import Mapping
from types import MappingProxyType

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Connections = Mapping[str, BaseDatabaseWrapper]  # by alias

NONE: Connections = MappingProxyType({})


class ThreadConnections(threading.local):
    """The connections of a thread. Django's `connections` has them too, but takes longer to find or to change them."""

    current: Connections = NONE  # those of the request
    djangos: Connections = NONE  # those that Django's `connections` was given last

    def begin(self, of_request: Connections) -> None:
        """Use these connections, also in Django's `connections`."""
        self.current = of_request
        if self.djangos is not of_request:
            self.djangos = of_request
            for alias, connection in of_request.items():
                connections[alias] = connection

    def end(self) -> None:
        self.current = NONE
