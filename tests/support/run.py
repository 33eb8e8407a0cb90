"""The servers of a test run, and the database that each test database is a copy of."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from tests.support.citus import citus_cluster
from tests.support.migrated import migrated
from tests.support.postgresql import SharedPostgresql, breakable_postgresql


@contextmanager
def running_database() -> Iterator[None]:
    """Start the server or the cluster that `--database` names, and create its databases. Remove both afterwards."""
    name = os.environ["TEST_DATABASE"]
    port = urlsplit(os.environ.get("DATABASE_URL", "")).port
    with ExitStack() as stack:
        if name == "citus":
            os.environ.update(stack.enter_context(citus_cluster(port=port)).variables)
        elif name == "postgresql" and "TEST_DATABASE_URL" not in os.environ:
            stack.enter_context(breakable_postgresql(SharedPostgresql, port=port))
        if name != "citus":
            stack.enter_context(migrated())
        yield
