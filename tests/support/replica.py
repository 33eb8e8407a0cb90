"""A replica for tests in this process: the test database on a second connection."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connections

from tests.support.connecting import unblocked

REPLICA = "replica"


@contextmanager
def database_as_replica() -> Iterator[None]:
    """Use the database of the primary as its replica too. The name of its application is `replica`."""
    settings = connections.settings[DEFAULT_DB_ALIAS]
    options = {**settings["OPTIONS"], "application_name": REPLICA}
    connections.settings[REPLICA] = settings
    connections[REPLICA] = unblocked(settings["ENGINE"])({**settings, "OPTIONS": options}, REPLICA)
    try:
        yield
    finally:
        connections[REPLICA].close()
        del connections[REPLICA], connections.settings[REPLICA]
