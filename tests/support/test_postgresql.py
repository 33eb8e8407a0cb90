"""The PostgreSQL server that tests can stop, freeze and start again."""

from collections.abc import Callable, Iterator
from typing import LiteralString

import psycopg
import pytest

from tests.support.postgresql import BreakablePostgresql, breakable_postgresql


@pytest.fixture(scope="module")
def server() -> Iterator[BreakablePostgresql]:
    with breakable_postgresql() as server:
        yield server


def fetch(server: BreakablePostgresql, query: LiteralString) -> object:
    with psycopg.connect(server.url, connect_timeout=2) as connection:
        return connection.execute(query).fetchall()


def test_two_servers_are_independent(server: BreakablePostgresql) -> None:
    with breakable_postgresql() as other:
        identifier = "SELECT system_identifier FROM pg_control_system()"

        assert fetch(server, identifier) != fetch(other, identifier)


@pytest.mark.parametrize("stop", [BreakablePostgresql.stop_immediately, BreakablePostgresql.kill])
def test_restarted_server_has_its_address_and_committed_data(
    server: BreakablePostgresql, stop: Callable[[BreakablePostgresql], None]
) -> None:
    with psycopg.connect(server.url) as connection:
        connection.execute("DROP TABLE IF EXISTS numbers")
        connection.execute("CREATE TABLE numbers (number int)")
        connection.execute("INSERT INTO numbers VALUES (1)")
    interrupted = psycopg.connect(server.url)
    interrupted.execute("INSERT INTO numbers VALUES (2)")

    stop(server)

    with pytest.raises(psycopg.OperationalError):
        interrupted.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="refused"):
        fetch(server, "SELECT 1")
    server.start()
    assert fetch(server, "SELECT sum(number) FROM numbers") == [(1,)]


def test_frozen_server_responds_after_thawing(server: BreakablePostgresql) -> None:
    server.freeze()
    with pytest.raises(psycopg.OperationalError, match="timeout"):
        fetch(server, "SELECT 1")

    server.thaw()

    assert fetch(server, "SELECT 1") == [(1,)]


def test_frozen_server_can_be_killed(server: BreakablePostgresql) -> None:
    server.freeze()

    server.kill()

    server.start()
    assert fetch(server, "SELECT 1") == [(1,)]
