"""The Authorization header (RFC 6750), and the time of a key's last use."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from payments.access.keys import PAUSE_AFTER_FAILURE
from payments.models import ApiKey, Organization
from payments.models.identifiers import new_key
from payments.runtime.process import process
from tests.support.api import Api, key_text, payment_ids
from tests.support.factories import ApiKeyFactory, PaymentFactory
from tests.support.list_errors import failing_statements
from tests.support.ports import free_port
from tests.support.replica import database_as_replica
from tests.support.sql import execute, fetch_value
from tests.support.threads import in_thread
from tests.support.waiting import SECONDS_MAX

pytestmark = pytest.mark.also("citus")

NO_CREDENTIALS = 'Bearer realm="payments"'
INVALID = 'Bearer realm="payments", error="invalid_token"'


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
def replica() -> Iterator[None]:
    with database_as_replica():
        yield


@contextmanager
def failing_primary() -> Iterator[None]:
    """Make each statement on the primary fail, as after the end of its connection."""
    with failing_statements("", OperationalError("the connection is lost")):
        yield


PAID_DAYS = {"paidAt[gte]": "2026-01-01", "paidAt[lt]": "2026-01-03"}


@pytest.fixture
def unconnected_key(monkeypatch: pytest.MonkeyPatch) -> ApiKey:
    """A key with one payment, in a thread that was never connected to the primary, which fails."""
    key: ApiKey = ApiKeyFactory.create(organization=PaymentFactory.create(id="pt_1").organization)
    connection.close()
    monkeypatch.setattr(connection, "uses_citus", None)
    monkeypatch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
    monkeypatch.setitem(connection.settings_dict, "PORT", free_port())
    return key


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("query", [{}, PAID_DAYS])
def test_replica_serves_a_thread_that_was_never_connected_to_the_primary(
    client: Client, replica: None, unconnected_key: ApiKey, query: dict[str, str]
) -> None:
    response = Api(client, unconnected_key).get(**query)

    assert response.status_code == 200
    assert payment_ids(response.json()) == ["pt_1"]


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("query", [{}, PAID_DAYS])
def test_thread_that_was_never_connected_reports_the_outage(
    client: Client, unconnected_key: ApiKey, query: dict[str, str]
) -> None:
    assert Api(client, unconnected_key).get(**query).status_code == 503


@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_replica_provides_keys_and_payments_during_an_outage(client: Client, replica: None) -> None:
    payment = PaymentFactory.create()
    api = Api(client, ApiKeyFactory.create(organization=payment.organization))
    before = api.get()

    with failing_primary():
        during = [api.get(), api.send("GET", "/v2/payments", If_None_Match=before["ETag"])]

    assert [before.status_code, *(response.status_code for response in during)] == [200, 200, 304]
    assert payment_ids(before.json()) == payment_ids(during[0].json()) == [payment.id]


@pytest.mark.only("postgresql", "citus")
@pytest.mark.django_db(transaction=True)
def test_only_the_primary_says_that_a_key_is_unknown(client: Client, replica: None) -> None:
    """A replica may not have a new key yet."""
    authorization = f"Bearer {new_key('live')}"
    with failing_primary():
        during = get_payments(client, authorization)

    assert (during.status_code, get_payments(client, authorization).status_code) == (503, 401)


def test_first_use_is_written(client: Client, organization: Organization) -> None:
    key = ApiKeyFactory.create(organization=organization, last_used_at=None)

    get_payments(client, f"Bearer {key_text(key)}")

    key.refresh_from_db()
    assert key.last_used_at is not None


@pytest.mark.parametrize(("elapsed_seconds", "is_written"), [(50, False), (60, True)])
def test_use_is_written_at_most_once_a_minute(api: Api, key: ApiKey, elapsed_seconds: int, is_written: bool) -> None:
    used_at = datetime.now(UTC) - timedelta(seconds=elapsed_seconds)
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=used_at)

    api.get()

    key.refresh_from_db()
    assert (key.last_used_at != used_at) is is_written


def test_only_one_of_two_concurrent_uses_is_written(api: Api, key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    used_at = datetime.now(UTC) + timedelta(seconds=1)
    is_used = False

    def use_before_the_update(execute: Any, statement: str, *rest: Any) -> Any:
        """Let another request write its use after this one has read the key."""
        nonlocal is_used
        if statement.startswith("UPDATE") and not is_used:
            is_used = True
            ApiKey.objects.filter(pk=key.pk).update(last_used_at=used_at)
        return execute(statement, *rest)

    with connection.execute_wrapper(use_before_the_update):
        assert api.get().status_code == 200

    key.refresh_from_db()
    assert key.last_used_at == used_at


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
def test_use_of_a_locked_key_is_left_to_a_later_request(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    key = ApiKeyFactory.create(last_used_at=None)
    api = Api(client, key)

    with locking("SELECT FROM payments_apikey FOR UPDATE"):
        api.get()
    key.refresh_from_db()
    before = key.last_used_at
    api.get()

    key.refresh_from_db()
    assert before is None
    assert key.last_used_at is not None
    assert caplog.messages == []


@pytest.mark.only("postgresql")
@pytest.mark.django_db(transaction=True)
def test_use_is_not_written_while_the_table_is_locked(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    key = ApiKeyFactory.create(last_used_at=None)

    with locking("LOCK TABLE payments_apikey IN EXCLUSIVE MODE"):
        Api(client, key).get()

    key.refresh_from_db()
    assert key.last_used_at is None
    assert "canceling statement due to lock timeout" in caplog.text


@contextmanager
def locking(statement: str) -> Iterator[None]:
    """Hold the locks of a statement in another connection."""
    with closing(connection.copy()) as other, other.cursor() as cursor:
        other.set_autocommit(False)
        cursor.execute(statement)
        yield
        other.rollback()


@pytest.mark.only("postgresql")
def test_writing_a_use_does_not_wait_for_the_disk(api: Api, key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    settings: list[str] = []

    def look(execute: Any, statement: str, *rest: Any) -> Any:
        if statement.startswith("UPDATE"):
            settings.append(fetch_value("SHOW synchronous_commit"))
        return execute(statement, *rest)

    with connection.execute_wrapper(look):
        api.get()

    assert settings == ["off"]


@pytest.mark.parametrize("is_over", [False, True])
def test_use_is_not_written_until_the_pause_after_a_failure_is_over(api: Api, key: ApiKey, is_over: bool) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    with failing_statements("UPDATE", DatabaseError()):
        api.get()
    if is_over:
        process.last_use_paused_until[key.pk] -= PAUSE_AFTER_FAILURE

    api.get()

    key.refresh_from_db()
    assert (key.last_used_at is not None) is is_over


def test_use_is_not_written_during_an_outage(api: Api, key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    process.primary.breaker.open(OperationalError(), seconds=60)

    api.get()

    key.refresh_from_db()
    assert key.last_used_at is None


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
def test_writing_a_use_restores_the_settings_of_the_transaction(api: Api, key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=None)
    execute("SET LOCAL statement_timeout = '3s'")
    execute("SET LOCAL lock_timeout = '2s'")
    synchronous_commit = fetch_value("SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'")

    api.get()

    expected = {"statement_timeout": "3s", "lock_timeout": "2s", "synchronous_commit": synchronous_commit}
    key.refresh_from_db()
    assert key.last_used_at is not None
    assert {name: fetch_value(f"SHOW {name}") for name in expected} == expected


@pytest.mark.django_db(transaction=True)
def test_writing_a_use_does_not_wait_for_another_writer(client: Client) -> None:
    """On SQLite the other writer holds the only write lock, on PostgreSQL the lock of the key's row."""
    key = ApiKeyFactory.create(last_used_at=None)
    locked, released = threading.Event(), threading.Event()

    def hold_lock() -> None:
        with transaction.atomic():
            ApiKey.objects.filter(pk=key.pk).update(name="changed")
            locked.set()
            released.wait(timeout=SECONDS_MAX)

    holder = in_thread(hold_lock)
    holder.start()
    try:
        assert locked.wait(timeout=SECONDS_MAX)
        response = get_payments(client, f"Bearer {key_text(key)}")
        was_released_first = not holder.is_alive()
    finally:
        released.set()
        holder.join()

    key.refresh_from_db()
    assert (response.status_code, was_released_first) == (200, False)
    assert (key.name, key.last_used_at) == ("changed", None)
