"""The database backends: their connections have a deadline, and are checked without a query."""

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.db.models import BinaryField

from payments.runtime.process import process

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgresql")]


@pytest.fixture
def connected() -> Iterator[Any]:
    """This thread's open connection."""
    connection.close()
    connection.ensure_connection()
    yield connection
    connection.close()


def last_statement(process_id: int) -> str:
    """Return the last statement on a server connection, as another connection sees it."""
    info = connection.connection.info
    with psycopg.connect(info.dsn, password=info.password) as other:
        row = other.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [process_id]).fetchone()
    assert row is not None
    return str(row[0])


def test_values_of_binary_fields_are_written(connected: Any) -> None:
    """Django looks for `Binary` where it looks for `connect`."""
    with connected.cursor() as cursor:
        cursor.execute("SELECT %s", [BinaryField().get_db_prep_value(b"\x00", connected)])

        assert bytes(cursor.fetchone()[0]) == b"\x00"


def test_new_connection_has_the_limits_only_in_a_request(connected: Any) -> None:
    def statement_timeout() -> str:
        with connected.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            return str(cursor.fetchone()[0])

    command = statement_timeout()
    connected.close()
    with process.deadline:
        request = statement_timeout()

    assert (command, request) == ("0", "48s")


def test_connection_is_not_attempted_just_before_the_deadline(connected: Any) -> None:
    connected.close()

    with process.deadline, process.deadline.shortened(0.1), pytest.raises(OperationalError, match="deadline"):
        connected.ensure_connection()


def test_usable_connection_is_recognized_without_a_query(connected: Any) -> None:
    with connected.cursor() as cursor:
        cursor.execute("SELECT 'the last statement'")

    assert connected.is_usable()

    assert last_statement(connected.connection.info.backend_pid) == "SELECT 'the last statement'"


def has_been_checked(connected: Any) -> bool:
    """Return whether the connection is open and needs no further check in this request."""
    connected.health_check_done = False
    connected.close_if_unusable_or_obsolete()
    connected.close_if_health_check_failed()
    return connected.connection is not None and connected.health_check_done


def test_request_begins_with_a_check_of_the_connection(connected: Any) -> None:
    assert has_been_checked(connected)
    with psycopg.connect(connected.connection.info.dsn, password=connected.connection.info.password) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connected.connection.info.backend_pid])

    assert not has_been_checked(connected)


def test_request_begins_without_an_old_or_changed_connection(connected: Any) -> None:
    connected.close_at = time.monotonic()
    was_old = has_been_checked(connected)
    connected.ensure_connection()
    connected.set_autocommit(False)
    was_changed = has_been_checked(connected)

    assert (was_old, was_changed, connected.connection) == (False, False, None)


def test_connection_after_an_error_is_checked_only_outside_of_requests(connected: Any) -> None:
    connected.errors_occurred = True

    command = connected.is_usable()
    with process.deadline:
        request = connected.is_usable()

    assert (command, request) == (True, False)
