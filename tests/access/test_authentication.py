"""The Authorization header (RFC 6750), and the time of a key's last use."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments import api_keys
from payments.access.keys import AuthenticatedKey, find_key
from payments.access.last_use import PAUSE_AFTER_FAILURE, WRITE_INTERVAL_SECONDS, record_use
from payments.database.limits import NO_WAITING
from payments.database.round_trips import NOTHING
from payments.models import AccessState, ApiKey, Organization
from payments.routing import read_revision
from payments.runtime.process import process
from payments.runtime.servers import REPLICA
from tests.support.api import Api, key_text
from tests.support.connecting import unblocked
from tests.support.factories import ApiKeyFactory, OrganizationFactory
from tests.support.sql import execute, fetch_value

pytestmark = pytest.mark.also("citus")

NO_CREDENTIALS = 'Bearer realm="payments"'
INVALID = 'Bearer realm="payments", error="invalid_token"'
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def authenticated(key: ApiKey) -> AuthenticatedKey:
    """Return the key as a request has it."""
    authenticated_key = find_key(key_text(key), now=NOW)
    assert authenticated_key is not None
    return authenticated_key


def get_payments(client: Client, authorization: str | None) -> Any:
    return client.get("/v2/payments", headers={"Authorization": authorization} if authorization is not None else {})


@pytest.mark.parametrize("authorization", [None, "", "Basic bGl2ZV86", "live_abc", "Token live_abc", "Bearerlive_abc"])
@pytest.mark.django_db
def test_missing_credentials_get_401_without_an_error(client: Client, authorization: str | None) -> None:
    response = get_payments(client, authorization)

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == NO_CREDENTIALS
    assert response.json()["detail"] == "Send an API key: Authorization: Bearer <API_KEY>."


def test_all_invalid_keys_get_the_same_response(client: Client, key: ApiKey, organization: Organization) -> None:
    text = key_text(key)
    expired = ApiKeyFactory.create(organization=organization, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    revoked = ApiKeyFactory.create(organization=organization, revoked_at=datetime.now(UTC))
    deleted = ApiKeyFactory.create(organization=organization)
    ApiKey.objects.filter(pk=deleted.pk).delete()

    responses = [
        get_payments(client, f"Bearer {credentials}")
        for credentials in (
            *(key_text(stored) for stored in (expired, revoked, deleted)),
            text[:-1] + ("a" if text[-1] != "a" else "b"),
            text.replace("live_", "test_"),
            f"{text} {text}",
            f"{text}x",
            "nonsense",
            "",
            "\u00e9",
            "x" * 5000,
        )
    ]

    assert {response.status_code for response in responses} == {401}
    assert {response["WWW-Authenticate"] for response in responses} == {INVALID}
    assert len({response.content for response in responses}) == 1
    assert responses[0].json()["detail"] == "This API key is invalid."


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
def test_scheme_is_case_insensitive(client: Client, key: ApiKey, scheme: str) -> None:
    assert get_payments(client, f"{scheme} {key_text(key)}").status_code == 200


def test_key_works_until_it_expires(client: Client, organization: Organization) -> None:
    key = ApiKeyFactory.create(organization=organization, expires_at=datetime.now(UTC) + timedelta(hours=1))

    assert get_payments(client, f"Bearer {key_text(key)}").status_code == 200


def test_revoked_key_is_refused_at_the_next_request(api: Api, key: ApiKey) -> None:
    before = api.get()
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=datetime.now(UTC))

    assert (before.status_code, api.get().status_code) == (200, 401)


@pytest.mark.parametrize("text", ["live_0123456789012345678901234567890123456789", "nonsense", ""])
def test_text_with_a_wrong_checksum_costs_no_query(client: Client, db: None, text: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        get_payments(client, f"Bearer {text}")

    assert len(queries) == 0


@pytest.fixture
def open_breaker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Return a function that opens the circuit breaker of the primary. The replica is the same database."""
    settings = connections.settings[DEFAULT_DB_ALIAS]
    monkeypatch.setitem(connections.settings, REPLICA, settings)
    connections[REPLICA] = unblocked(settings["ENGINE"])(settings, REPLICA)
    yield lambda: monkeypatch.setattr(process.primary.breaker, "retry_at", math.inf)
    connections[REPLICA].close()
    del connections[REPLICA]


@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_replica_provides_keys_during_an_outage(open_breaker: Callable[[], None]) -> None:
    key = ApiKeyFactory.create()
    from_primary = authenticated(key)

    open_breaker()
    with CaptureQueriesContext(connection) as queries:
        from_replica = authenticated(key)

    assert from_primary.is_from_primary
    assert from_replica == from_primary._replace(is_from_primary=False)
    assert len(queries) == 0


@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_revision_is_that_of_the_organization_and_mode(open_breaker: Callable[[], None]) -> None:
    key = ApiKeyFactory.create()
    states = [(OrganizationFactory.create().id, "live"), (key.organization_id, "live"), (key.organization_id, "test")]
    for number, (organization_id, mode) in enumerate(states):
        AccessState.objects.create(organization_id=organization_id, mode=mode, revision=number)

    with CaptureQueriesContext(connection) as queries:
        revision = read_revision(key.access, NOTHING)

    assert revision == 1
    assert len(queries) == 1


@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_revision_of_payments_that_never_changed_is_0(open_breaker: Callable[[], None]) -> None:
    assert read_revision(ApiKeyFactory.create().access, NOTHING) == 0


@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_revision_is_unknown_during_an_outage(open_breaker: Callable[[], None]) -> None:
    access = ApiKeyFactory.create().access
    open_breaker()

    assert read_revision(access, NOTHING) is None


@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_key_that_the_replica_lacks_is_searched_on_the_primary(open_breaker: Callable[[], None]) -> None:
    open_breaker()
    with CaptureQueriesContext(connection) as queries:
        unknown = find_key(api_keys.new_key("live"), now=NOW)

    assert unknown is None
    assert len(queries) == 1


def test_first_use_is_written(client: Client, organization: Organization) -> None:
    key = ApiKeyFactory.create(organization=organization, last_used_at=None)

    get_payments(client, f"Bearer {key_text(key)}")

    key.refresh_from_db()
    assert key.last_used_at is not None


@pytest.mark.parametrize(
    ("elapsed_seconds", "is_written"), [(WRITE_INTERVAL_SECONDS - 1, False), (WRITE_INTERVAL_SECONDS, True)]
)
def test_use_is_written_at_most_once_a_minute(key: ApiKey, elapsed_seconds: int, is_written: bool) -> None:
    later = NOW + timedelta(seconds=elapsed_seconds)
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=NOW)

    record_use(authenticated(key), now=later)

    key.refresh_from_db()
    assert (key.last_used_at == later) is is_written


def test_only_one_of_two_concurrent_uses_is_written(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    first, second = (authenticated(key) for _ in range(2))

    record_use(first, now=NOW)
    record_use(second, now=NOW + timedelta(seconds=1))

    key.refresh_from_db()
    assert key.last_used_at == NOW


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
def test_use_of_a_locked_key_is_left_to_a_later_request(caplog: pytest.LogCaptureFixture) -> None:
    key = ApiKeyFactory.create(last_used_at=None)
    authenticated_key = authenticated(key)

    with closing(connection.copy()) as other, other.cursor() as cursor:
        other.set_autocommit(False)
        cursor.execute("SELECT FROM payments_apikey FOR UPDATE")
        record_use(authenticated_key, now=NOW)
        other.rollback()
    key.refresh_from_db()
    before = key.last_used_at
    record_use(authenticated_key, now=NOW)

    key.refresh_from_db()
    assert (before, key.last_used_at) == (None, NOW)
    assert caplog.messages == []


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
def test_use_is_not_written_while_the_table_is_locked(caplog: pytest.LogCaptureFixture) -> None:
    key = ApiKeyFactory.create(last_used_at=None)
    authenticated_key = authenticated(key)

    with closing(connection.copy()) as other, other.cursor() as cursor:
        other.set_autocommit(False)
        cursor.execute("LOCK TABLE payments_apikey")
        record_use(authenticated_key, now=NOW)
        other.rollback()

    key.refresh_from_db()
    assert key.last_used_at is None
    assert "canceling statement due to lock timeout" in caplog.text


@pytest.mark.only("postgresql")
def test_writing_a_use_does_not_wait_for_the_disk(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    authenticated_key = authenticated(key)
    settings: list[str] = []

    def look(execute: Any, statement: str, *rest: Any) -> Any:
        if statement.startswith("UPDATE"):
            settings.append(fetch_value("SHOW synchronous_commit"))
        return execute(statement, *rest)

    with connection.execute_wrapper(look):
        record_use(authenticated_key, now=NOW)

    assert settings == ["off"]


@pytest.mark.parametrize(("elapsed", "is_written"), [(timedelta(0), False), (PAUSE_AFTER_FAILURE, True)])
def test_use_is_not_written_soon_after_a_failure(key: ApiKey, elapsed: timedelta, is_written: bool) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    authenticated_key = authenticated(key)

    def refuse(*_statement: Any) -> Any:
        raise DatabaseError

    with connection.execute_wrapper(refuse):
        record_use(authenticated_key, now=NOW)
    record_use(authenticated_key, now=NOW + elapsed)

    key.refresh_from_db()
    assert (key.last_used_at is not None) is is_written


def test_use_is_not_written_during_an_outage(key: ApiKey, monkeypatch: pytest.MonkeyPatch) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    authenticated_key = authenticated(key)
    monkeypatch.setattr(process.primary.breaker, "retry_at", math.inf)

    with CaptureQueriesContext(connection) as queries:
        record_use(authenticated_key, now=NOW)

    assert len(queries) == 0


def test_request_succeeds_if_its_use_cannot_be_written(
    client: Client, organization: Organization, caplog: pytest.LogCaptureFixture
) -> None:
    key = ApiKeyFactory.create(organization=organization, last_used_at=None)

    def refuse_updates(execute: Any, statement: str, *rest: Any) -> Any:
        if statement.startswith("UPDATE"):
            raise DatabaseError("cannot execute UPDATE in a read-only transaction")
        return execute(statement, *rest)

    with connection.execute_wrapper(refuse_updates):
        response = get_payments(client, f"Bearer {key_text(key)}")

    assert response.status_code == 200
    assert "read-only" in caplog.text
    assert key_text(key) not in caplog.text


@pytest.mark.only("postgresql", "citus")
def test_writing_a_use_restores_the_settings_of_the_transaction(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    execute("SET LOCAL statement_timeout = '3s'; SET LOCAL lock_timeout = '2s'")
    synchronous_commit = fetch_value("SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'")

    record_use(authenticated(key), now=NOW)

    settings = {name: fetch_value(f"SHOW {name}") for name in ("statement_timeout", *NO_WAITING)}
    key.refresh_from_db()
    assert key.last_used_at == NOW
    assert settings == {
        "statement_timeout": "3s",
        "lock_timeout": "2s",
        "synchronous_commit": synchronous_commit,
    }


@pytest.mark.django_db(transaction=True)
def test_writing_a_use_does_not_wait_for_another_writer() -> None:
    """On SQLite the other writer holds the only write lock, on PostgreSQL the lock of the key's row."""
    key = ApiKeyFactory.create(last_used_at=None)
    authenticated_key = authenticated(key)
    if connection.vendor == "sqlite":
        execute("PRAGMA busy_timeout = 60000")  # longer than the other writer holds the lock
    locked, released = threading.Event(), threading.Event()

    def hold_lock() -> None:
        try:
            with transaction.atomic():
                ApiKey.objects.filter(pk=key.pk).update(name="changed")
                locked.set()
                released.wait(timeout=20)
        finally:
            connection.close()

    holder = threading.Thread(target=hold_lock)
    holder.start()
    try:
        assert locked.wait(timeout=20)
        record_use(authenticated_key, now=NOW)
        was_released_first = not holder.is_alive()
    finally:
        released.set()
        holder.join()

    key.refresh_from_db()
    assert not was_released_first
    assert (key.name, key.last_used_at) == ("changed", None)
    if connection.vendor == "sqlite":
        assert fetch_value("PRAGMA busy_timeout") == 60000
        connection.close()
