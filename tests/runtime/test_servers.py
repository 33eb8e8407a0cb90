"""Circuit breakers and replication lag."""

import logging
import sqlite3
from collections.abc import Callable
from threading import Thread
from time import monotonic

import pytest
from django.db import DEFAULT_DB_ALIAS, DatabaseError, OperationalError, ProgrammingError

from payments.runtime.circuit_breaker import CircuitOpen
from payments.runtime.servers import (
    LAG_RETRY_SECONDS,
    OPEN_SECONDS_MIN,
    POSITIONS_MAX,
    PRIMARY,
    REPLICA,
    Replica,
    Server,
    WalPosition,
)
from tests.support.list_errors import caused_by, timeout_error
from tests.support.sql import execute
from tests.support.waiting import SECONDS_MAX


def failing(error: Exception) -> Callable[[str], str]:
    def fail(_alias: str) -> str:
        raise error

    return fail


def test_query_gets_the_alias_of_the_server() -> None:
    assert Server(PRIMARY).run(lambda alias: alias) == PRIMARY


def test_failing_server_is_skipped_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(PRIMARY)

    results = [server.run(failing(OperationalError("gone"))), server.run(str)]
    server.breaker.retry_at -= OPEN_SECONDS_MIN
    results += [server.run(failing(OperationalError("still gone"))), server.run(str)]
    server.breaker.retry_at -= OPEN_SECONDS_MIN
    results += [server.run(str), server.run(str)]

    assert results == [None, None, None, None, PRIMARY, PRIMARY]
    assert caplog.messages == [
        "Circuit breaker of the primary opened: gone",
        "Circuit breaker of the primary closed.",
    ]


@pytest.mark.parametrize("error", [timeout_error(), ProgrammingError("syntax error"), ValueError("a bug")])
def test_error_that_any_server_would_raise_leaves_the_circuit_closed(error: Exception) -> None:
    server = Server(PRIMARY)

    with pytest.raises(type(error)):
        server.run(failing(error))

    assert not server.breaker.is_open


@pytest.mark.parametrize("error", [timeout_error(), caused_by(sqlite3.DatabaseError(), DatabaseError)])
def test_outage_opens_the_circuit_breaker(error: Exception) -> None:
    server = Server(REPLICA)

    assert server.run(failing(error), timeout_opens=True) is None

    assert server.breaker.is_open


def test_server_that_was_not_asked_keeps_its_circuit_breaker() -> None:
    server = Server(PRIMARY)

    assert server.run(failing(CircuitOpen("another request has just waited"))) is None

    assert not server.breaker.is_open


def test_healthy_server_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    Server(PRIMARY).run(str)

    assert caplog.messages == []


def new_replica(alias: str = REPLICA) -> Replica:
    return Replica(alias, primary=Server(PRIMARY), on_lag_measured=lambda _: None)


def test_primary_is_measured_by_one_thread_at_a_time() -> None:
    replica = new_replica()
    measuring = Thread(target=replica.measure_primary, args=(0.0,))

    with replica.measuring_primary:
        measuring.start()
        measuring.join(timeout=SECONDS_MAX)
        is_waiting = measuring.is_alive()
    measuring.join()

    assert not is_waiting
    assert replica.positions == []


def replica_of(*positions: tuple[int, float]) -> Replica:
    """Return a replica of a primary that had these positions, in bytes, at these moments."""
    replica = new_replica()
    for position, measured_at in positions:
        replica.record_position(WalPosition(position, measured_at))
    return replica


@pytest.mark.parametrize(
    ("replayed_bytes", "seconds"),
    [(400, 0), (500, 0), (399, 0), (300, 0), (299, 1), (200, 1), (199, 3), (100, 3), (99, 5), (0, 5)],
)
def test_lag_begins_with_the_first_position_that_is_not_replayed(replayed_bytes: int, seconds: float) -> None:
    replica = replica_of((100, 1), (200, 3), (300, 5), (400, 6))

    assert replica.compute_lag(replayed_bytes) == seconds


def test_replica_of_an_idle_or_unknown_primary_does_not_lag() -> None:
    assert replica_of((100, 1), (100, 50), (100, 99)).compute_lag(100) == 0
    assert replica_of().compute_lag(0) == 0


def test_stuck_replica_lags_while_the_primary_is_idle() -> None:
    assert replica_of((100, 1), (100, 50), (100, 99)).compute_lag(50) == 98


def test_positions_before_a_failover_are_forgotten() -> None:
    """The new primary may lack the end of the old primary's log."""
    replica = replica_of((100, 1), (200, 3), (150, 5))

    assert replica.compute_lag(150) == 0


def test_number_of_recorded_positions_is_limited() -> None:
    replica = replica_of(*((number, float(number)) for number in range(1000)))

    assert replica.compute_lag(0) == len(replica.positions) - 1 == POSITIONS_MAX


@pytest.mark.only("postgresql")
def test_replica_with_unknown_lag_is_read_and_rarely_checked(db: None, caplog: pytest.LogCaptureFixture) -> None:
    """Some hosted PostgreSQL services lack a function that the query needs."""
    execute("""
        CREATE SCHEMA lacking;
        CREATE FUNCTION lacking.pg_current_wal_flush_lsn() RETURNS pg_lsn LANGUAGE plpgsql
            AS $$ BEGIN RAISE feature_not_supported; END $$;
        SET LOCAL search_path = lacking, pg_catalog;
    """)
    replica = new_replica(DEFAULT_DB_ALIAS)

    assert [replica.is_usable(), replica.is_usable()] == [True, True]
    [message] = caplog.messages
    assert message.startswith("Cannot determine replication lag: ")
    assert replica.lag.measure_at - monotonic() > LAG_RETRY_SECONDS / 2
