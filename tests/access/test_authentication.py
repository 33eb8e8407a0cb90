"""The Authorization header (RFC 6750), and when a key's use is written."""

import math
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments import api_keys
from payments.access.authentication import AuthenticatedKey, find_key
from payments.access.last_use import NO_WAITING, WRITE_INTERVAL_SECONDS, record_use
from payments.models import ApiKey, Organization
from payments.runtime.process import process
from payments.runtime.servers import REPLICA
from tests.support.api import Api, key_text
from tests.support.connecting import unblocked
from tests.support.factories import ApiKeyFactory

NO_CREDENTIALS = 'Bearer realm="payments"'
INVALID = 'Bearer realm="payments", error="invalid_token"'
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def shown(key: ApiKey) -> AuthenticatedKey:
    """Return the key as a request has it."""
    found = find_key(key_text(key), now=NOW)
    assert found is not None
    return found


def ask(client: Client, authorization: str | None) -> Any:
    return client.get("/v2/payments", headers={"Authorization": authorization} if authorization is not None else {})


@pytest.mark.parametrize("authorization", [None, "", "Basic bGl2ZV86", "live_abc", "Token live_abc", "Bearerlive_abc"])
@pytest.mark.django_db
def test_no_credentials_are_asked_for(client: Client, authorization: str | None) -> None:
    response = ask(client, authorization)

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == NO_CREDENTIALS
    assert response.json()["detail"] == "Send an API key: Authorization: Bearer <API_KEY>."


def test_bad_keys_of_every_kind_get_one_answer(client: Client, key: ApiKey, organization: Organization) -> None:
    text = key_text(key)
    expired = ApiKeyFactory.create(organization=organization, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    revoked = ApiKeyFactory.create(organization=organization, revoked_at=datetime.now(UTC))
    deleted = ApiKeyFactory.create(organization=organization)
    ApiKey.objects.filter(pk=deleted.pk).delete()

    responses = [
        ask(client, f"Bearer {bad}")
        for bad in (
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
def test_the_schemes_name_is_case_insensitive(client: Client, key: ApiKey, scheme: str) -> None:
    assert ask(client, f"{scheme} {key_text(key)}").status_code == 200


def test_a_key_works_until_it_expires(client: Client, organization: Organization) -> None:
    key = ApiKeyFactory.create(organization=organization, expires_at=datetime.now(UTC) + timedelta(hours=1))

    assert ask(client, f"Bearer {key_text(key)}").status_code == 200


def test_revoking_works_on_the_very_next_request(api: Api, key: ApiKey) -> None:
    before = api.get()
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=datetime.now(UTC))

    assert (before.status_code, api.get().status_code) == (200, 401)


@pytest.mark.parametrize("text", ["live_0123456789012345678901234567890123456789", "nonsense", ""])
def test_a_text_that_cannot_be_a_key_costs_no_query(client: Client, db: None, text: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        ask(client, f"Bearer {text}")

    assert len(queries) == 0


@pytest.fixture
def primary_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """A function from whose call on the primary is passed over; the replica is the same database."""
    settings = connections.settings[DEFAULT_DB_ALIAS]
    monkeypatch.setitem(connections.settings, REPLICA, settings)
    connections[REPLICA] = unblocked(settings["ENGINE"])(settings, REPLICA)
    yield lambda: monkeypatch.setattr(process.primary.breaker, "retry_at", math.inf)
    connections[REPLICA].close()
    del connections[REPLICA]


@pytest.mark.django_db(transaction=True)
def test_a_replica_knows_keys_but_not_revisions_while_the_primary_is_away(primary_away: Callable[[], None]) -> None:
    key = ApiKeyFactory.create()
    usual = shown(key)

    primary_away()
    with CaptureQueriesContext(connection) as queries:
        meanwhile = shown(key)

    assert usual.revision is not None
    assert meanwhile == usual._replace(revision=None)
    assert len(queries) == 0


@pytest.mark.django_db(transaction=True)
def test_a_key_that_a_replica_does_not_know_is_looked_for_on_the_primary(primary_away: Callable[[], None]) -> None:
    primary_away()
    with CaptureQueriesContext(connection) as queries:
        unknown = find_key(api_keys.new_key("live"), now=NOW)

    assert unknown is None
    assert len(queries) == 1


def test_the_first_use_is_written(client: Client, organization: Organization) -> None:
    key = ApiKeyFactory.create(organization=organization, last_used_at=None)

    ask(client, f"Bearer {key_text(key)}")

    key.refresh_from_db()
    assert key.last_used_at is not None


@pytest.mark.parametrize(
    ("elapsed_seconds", "written"), [(WRITE_INTERVAL_SECONDS - 1, False), (WRITE_INTERVAL_SECONDS, True)]
)
def test_a_use_is_written_at_most_once_a_minute(key: ApiKey, elapsed_seconds: int, written: bool) -> None:
    later = NOW + timedelta(seconds=elapsed_seconds)
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=NOW)

    record_use(shown(key), now=later)

    key.refresh_from_db()
    assert (key.last_used_at == later) is written


def test_of_two_requests_that_both_would_write_one_does(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    first, second = (shown(key) for _ in range(2))

    record_use(first, now=NOW)
    record_use(second, now=NOW + timedelta(seconds=1))

    key.refresh_from_db()
    assert key.last_used_at == NOW


def test_a_use_that_cannot_be_written_fails_no_request(
    client: Client, organization: Organization, caplog: pytest.LogCaptureFixture
) -> None:
    key = ApiKeyFactory.create(organization=organization, last_used_at=None)

    def refuse_updates(execute: Any, statement: str, *rest: Any) -> Any:
        if statement.startswith("UPDATE"):
            raise DatabaseError("cannot execute UPDATE in a read-only transaction")
        return execute(statement, *rest)

    with connection.execute_wrapper(refuse_updates):
        response = ask(client, f"Bearer {key_text(key)}")

    assert response.status_code == 200
    assert "read-only" in caplog.text
    assert key_text(key) not in caplog.text


def test_writing_a_use_leaves_the_settings_of_an_outer_transaction(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '3s'; SET LOCAL lock_timeout = '2s'")

        record_use(shown(key), now=NOW)

        held = {}
        for name in NO_WAITING:
            cursor.execute(f"SHOW {name}")
            (held[name],) = cursor.fetchone()
    key.refresh_from_db()
    assert key.last_used_at == NOW
    assert held == {"statement_timeout": "3s", "lock_timeout": "2s", "synchronous_commit": synchronous_commit()}


def synchronous_commit() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'")
        return str(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_a_use_waits_for_no_other_writer() -> None:
    """An import holds SQLite's only write lock; in PostgreSQL somebody holds the key's row."""
    key = ApiKeyFactory.create(last_used_at=None)
    seen = shown(key)
    locked, noted = threading.Event(), threading.Event()

    def hold() -> None:
        from django.db import transaction  # noqa: PLC0415

        try:
            with transaction.atomic():
                ApiKey.objects.filter(pk=key.pk).update(name="changed")
                locked.set()
                noted.wait(timeout=20)
        finally:
            connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert locked.wait(timeout=20)
        record_use(seen, now=NOW)
        waited_until_free = not holder.is_alive()
    finally:
        noted.set()
        holder.join()

    key.refresh_from_db()
    assert not waited_until_free
    assert (key.name, key.last_used_at) == ("changed", None)
