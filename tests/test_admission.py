"""Which failed reads make later reads of the same payments fail fast."""

import pytest
from django.db import DEFAULT_DB_ALIAS, OperationalError, ProgrammingError, connections

from payments.admission import PaymentsGuard
from payments.models import Access
from payments.runtime import circuit_breaker
from payments.runtime.circuit_breaker import DataBreakers
from payments.runtime.servers import REPLICA
from tests.support.list_errors import timeout_error

ACCESS = Access(1, "live")
LOST = OperationalError("the connection is lost")


@pytest.fixture(autouse=True)
def any_failure_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breaker, "SLOW_SECONDS", 0)


@pytest.fixture
def replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure a replica."""
    monkeypatch.setitem(connections.settings, REPLICA, connections.settings[DEFAULT_DB_ALIAS])


def is_recorded(error: Exception, *, has_read_key: bool = False) -> bool:
    """Return whether an error of a read is recorded as an outage of the payments."""
    current: DataBreakers = {}
    with PaymentsGuard(current, ACCESS) as guard:
        guard.has_read_key = has_read_key
        guard.error = error
    return ACCESS in current


@pytest.mark.parametrize(
    ("error", "expected"), [(LOST, True), (timeout_error(), True), (ProgrammingError("a bug"), False)]
)
def test_outage_is_recorded(error: Exception, expected: bool) -> None:
    assert is_recorded(error) == expected


@pytest.mark.parametrize(
    ("error", "has_read_key", "expected"),
    [
        (LOST, False, False),  # the server fails, and the other one may respond
        (LOST, True, True),  # the server works, but not with these payments
        (timeout_error(), False, True),
        (ProgrammingError("a bug"), True, False),
    ],
)
def test_with_a_replica_an_outage_is_recorded_if_the_server_works_otherwise(
    replica: None, error: Exception, has_read_key: bool, expected: bool
) -> None:
    assert is_recorded(error, has_read_key=has_read_key) == expected
