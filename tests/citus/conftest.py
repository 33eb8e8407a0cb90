"""Databases of the cluster that the tests of this directory run on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.citus import LOCAL
from tests.support.connecting import connected_to
from tests.support.migrated import database


@pytest.fixture
def local_tables(tmp_path: Path) -> Iterator[str]:
    """Connect to a database whose tables are not distributed yet, and return its URL."""
    with database(tmp_path, copy_of=LOCAL) as url, connected_to(url):
        yield url
