"""When a server is passed over, and how it is told that a replica lags."""

import logging
from collections.abc import Callable
from time import monotonic

import pytest
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, ProgrammingError, connection
from psycopg.errors import QueryCanceled

from payments.runtime.servers import PAUSE_SECONDS_MIN, TRIES_EVERY_SECONDS, Position, Replica, Server


def failing(error: Exception) -> Callable[[str], str]:
    def fail(_alias: str) -> str:
        raise error

    return fail


def test_a_server_is_asked_by_its_alias() -> None:
    assert Server(DEFAULT_DB_ALIAS).ask(lambda alias: alias) == DEFAULT_DB_ALIAS


def test_a_server_that_fails_is_passed_over_for_a_while_and_then_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(DEFAULT_DB_ALIAS)

    answers = [server.ask(failing(OperationalError("gone"))), server.ask(str)]
    server.asked_again_at -= PAUSE_SECONDS_MIN
    answers += [server.ask(failing(OperationalError("still gone"))), server.ask(str)]
    server.asked_again_at -= PAUSE_SECONDS_MIN
    answers += [server.ask(str), server.ask(str)]

    assert answers == [None, None, None, None, DEFAULT_DB_ALIAS, DEFAULT_DB_ALIAS]
    assert caplog.messages == [
        "The primary is passed over until it answers again: gone",
        "The primary answers again.",
    ]


def out_of_time() -> Exception:
    error = OperationalError("canceling statement due to statement timeout")
    error.__cause__ = QueryCanceled()
    return error


@pytest.mark.parametrize("error", [out_of_time(), ProgrammingError("syntax error"), ValueError("a bug")])
def test_what_another_server_would_say_too_is_raised(error: Exception) -> None:
    server = Server(DEFAULT_DB_ALIAS)

    with pytest.raises(type(error)):
        server.ask(failing(error))

    assert not server.is_away


def test_a_server_that_is_slow_with_what_is_quick_is_passed_over() -> None:
    server = Server("replica")

    assert server.ask(failing(out_of_time()), is_quick=True) is None

    assert server.is_away


def test_the_database_at_fault_is_passed_over_whatever_it_says() -> None:
    server = Server("replica")

    assert server.ask(failing(DatabaseError("disk image is malformed"))) is None

    assert server.is_away


def followed(*positions: tuple[int, float]) -> Replica:
    """Return a replica of a primary that was so many bytes far at these moments."""
    replica = Replica("replica")
    for reached, at in positions:
        replica.note(Position(reached, at))
    return replica


@pytest.mark.parametrize(
    ("seen", "seconds"),
    [(400, 0), (500, 0), (399, 0), (300, 0), (299, 1), (200, 1), (199, 3), (100, 3), (99, 5), (0, 5)],
)
def test_a_replica_lags_since_there_has_been_something_that_it_has_not_seen(seen: int, seconds: float) -> None:
    replica = followed((100, 1), (200, 3), (300, 5), (400, 6))

    assert replica.lag(seen) == seconds


def test_nobody_lags_behind_a_primary_that_is_idle_or_was_never_asked() -> None:
    assert followed((100, 1), (100, 50), (100, 99)).lag(100) == 0
    assert followed().lag(0) == 0


def test_a_stuck_replica_lags_while_the_primary_is_idle() -> None:
    assert followed((100, 1), (100, 50), (100, 99)).lag(50) == 98


def test_of_a_primary_that_has_gone_back_only_the_new_place_counts() -> None:
    """As another server's is that was made the primary, and lacks the last words of the one before."""
    replica = followed((100, 1), (200, 3), (150, 5))

    assert replica.lag(150) == 0


def test_places_are_kept_for_as_long_as_any_lag_may_be_allowed() -> None:
    replica = followed(*((number, float(number)) for number in range(1000)))

    assert replica.lag(0) == len(replica.positions) - 1 == 600


def test_replica_with_unknown_lag_is_read_and_rarely_checked(db: None, caplog: pytest.LogCaptureFixture) -> None:
    """Some hosted PostgreSQL services lack a function that the query needs."""
    with connection.cursor() as cursor:
        cursor.execute("""
            CREATE SCHEMA lacking;
            CREATE FUNCTION lacking.pg_current_wal_flush_lsn() RETURNS pg_lsn LANGUAGE plpgsql
                AS $$ BEGIN RAISE feature_not_supported; END $$;
            SET LOCAL search_path = lacking, pg_catalog;
        """)
    replica = Replica(DEFAULT_DB_ALIAS)

    assert [replica.keeps_up(), replica.keeps_up()] == [True, True]
    [message] = caplog.messages
    assert message.startswith("How far behind the replica is cannot be told: ")
    assert replica.looks_again_at - monotonic() > TRIES_EVERY_SECONDS / 2


def test_nothing_is_logged_while_all_is_well(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    Server(DEFAULT_DB_ALIAS).ask(str)

    assert caplog.messages == []
