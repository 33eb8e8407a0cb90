"""The server that tests may break, broken in every way that it offers."""

from collections.abc import Callable, Iterator
from typing import LiteralString

import psycopg
import pytest

from tests.support.postgresql import BreakablePostgresql, breakable_postgresql


@pytest.fixture(scope="module")
def server() -> Iterator[BreakablePostgresql]:
    with breakable_postgresql() as server:
        yield server


def ask(server: BreakablePostgresql, question: LiteralString) -> object:
    with psycopg.connect(server.url, connect_timeout=2) as connected:
        return connected.execute(question).fetchall()


def test_two_servers_do_not_meet(server: BreakablePostgresql) -> None:
    with breakable_postgresql() as other:
        identifier = "SELECT system_identifier FROM pg_control_system()"

        assert ask(server, identifier) != ask(other, identifier)


@pytest.mark.parametrize("end", [BreakablePostgresql.stop_immediately, BreakablePostgresql.kill])
def test_a_server_that_was_ended_is_back_at_its_address_with_what_was_committed(
    server: BreakablePostgresql, end: Callable[[BreakablePostgresql], None]
) -> None:
    with psycopg.connect(server.url) as connected:
        connected.execute("DROP TABLE IF EXISTS numbers")
        connected.execute("CREATE TABLE numbers (number int)")
        connected.execute("INSERT INTO numbers VALUES (1)")
    interrupted = psycopg.connect(server.url)
    interrupted.execute("INSERT INTO numbers VALUES (2)")

    end(server)

    with pytest.raises(psycopg.OperationalError):
        interrupted.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="refused"):
        ask(server, "SELECT 1")
    server.start()
    assert ask(server, "SELECT sum(number) FROM numbers") == [(1,)]


def test_a_frozen_server_answers_once_it_is_thawed(server: BreakablePostgresql) -> None:
    server.freeze()
    with pytest.raises(psycopg.OperationalError, match="timeout"):
        ask(server, "SELECT 1")

    server.thaw()

    assert ask(server, "SELECT 1") == [(1,)]


def test_a_frozen_server_can_be_killed(server: BreakablePostgresql) -> None:
    server.freeze()

    server.kill()

    server.start()
    assert ask(server, "SELECT 1") == [(1,)]
