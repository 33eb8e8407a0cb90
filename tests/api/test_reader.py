"""A request reads its key and its payments by one statement, and shows only what the key gives access to now."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import close_old_connections, connection
from pytest_django import Settings

from payments.access.keys import key_statement
from payments.listing.content import Content, Query
from payments.listing.feed import changes_query
from payments.listing.filters import EVERYTHING
from payments.listing.page import page_query
from payments.listing.query import payment_query, visible_payments
from payments.models import ApiKey, Mode, Organization, Payment
from payments.rows import named
from payments.runtime.hooks import Hook
from payments.runtime.rate_limits import RateLimit
from tests.support.api import Api, payment_ids
from tests.support.factories import ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.hooks import registered
from tests.support.replica import database_as_replica
from tests.support.sql import execute

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgresql")]

OTHER = 2


def first_page(*, limit: int) -> Query:
    payments = visible_payments()
    return page_query(payments, within=payments, selection=EVERYTHING, start=None, limit=limit)


class RoundTrips(Hook):
    """Records the tables of each round trip."""

    def __init__(self) -> None:
        self.tables: list[list[str]] = []

    def statement(self, sql: str, run: Callable[[], Any]) -> Any:
        names = {"payments_apikey": "key", "payments_accessstate": "state", "payments_payment": "payment"}
        self.tables.append([name for table, name in names.items() if f'FROM "{table}"' in sql])
        return run()


@pytest.fixture
def trips() -> Iterator[RoundTrips]:
    with registered(RoundTrips()) as hook:
        yield hook


def tables_of(trips: RoundTrips, request: Callable[[], Any]) -> list[list[str]]:
    """Return the tables of each round trip of a request."""
    trips.tables.clear()
    request()
    return [tables for tables in trips.tables if tables]


@pytest.fixture
def reading(api: Api, organization: Organization) -> Api:
    """A client with three payments."""
    PaymentFactory.create_batch(3, organization=organization)
    PaymentFactory.create(id="pt_1", organization=organization)
    assert api.get().status_code == 200
    return api


@pytest.mark.parametrize(
    "path",
    [
        "/v2/payments",
        "/v2/payments?limit=1&from=pt_1",
        "/v2/payments?sort=asc",
        "/v2/payments?from=pt_unknown",
        "/v2/payments?from=pt_unknown&status=invalid",
        "/v2/payments/changes",
        "/v2/payments/pt_1",
        "/v2/payments/pt_unknown",
    ],
)
def test_one_statement_reads_the_key_and_the_content(reading: Api, trips: RoundTrips, path: str) -> None:
    new = Api(reading.client, ApiKeyFactory.create(organization=reading.key.organization))

    assert [tables_of(trips, partial(api.get, path)) for api in (reading, new)] == [[["key", "state", "payment"]]] * 2


@pytest.mark.parametrize("path", ["/v2/payments?status=open", "/v2/payments?metadata[order]=1&sort=asc"])
def test_filters_are_applied_after_the_key(reading: Api, trips: RoundTrips, path: str) -> None:
    assert tables_of(trips, lambda: reading.get(path)) == [["key"], ["state", "payment"]]


@pytest.mark.parametrize("path", ["/v2/payments", "/v2/payments?status=open", "/v2/payments/pt_1"])
def test_one_statement_reads_the_key_and_the_revision(reading: Api, trips: RoundTrips, path: str) -> None:
    etag = reading.get(path)["ETag"]

    unchanged = tables_of(trips, lambda: reading.send("GET", path, If_None_Match=etag))
    Payment.objects.filter(id="pt_1").update(description="changed")
    changed = tables_of(trips, lambda: reading.send("GET", path, If_None_Match=etag))

    assert (unchanged, changed) == ([["key", "state"]], [["key", "state"], ["state", "payment"]])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v2/payments?limit=0"),
        ("GET", "/v2/payments?unknown=1"),
        ("GET", "/v2/payments/pt_1?limit=1"),
        ("GET", "/v2/payments/invalid"),
        ("POST", "/v2/payments"),
    ],
)
def test_invalid_request_reads_only_the_key(reading: Api, trips: RoundTrips, method: str, path: str) -> None:
    assert tables_of(trips, lambda: reading.send(method, path)) == [["key"]]


def revoke(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=datetime.now(UTC))


def expire(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(expires_at=datetime.now(UTC) - timedelta(seconds=1))


def delete(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).delete()


@pytest.mark.parametrize("make_unusable", [revoke, expire, delete])
@pytest.mark.parametrize(
    "path", ["/v2/payments", "/v2/payments?limit=0", "/v2/payments/pt_1", "/v2/payments?status=open"]
)
def test_key_that_became_unusable_is_refused(reading: Api, make_unusable: Callable[[ApiKey], None], path: str) -> None:
    make_unusable(reading.key)

    response = reading.get(path)

    assert response.status_code == 401
    assert b"pt_" not in response.content


@pytest.mark.parametrize("make_unusable", [revoke, expire, delete])
@pytest.mark.parametrize("query", [payment_query("pt_1"), changes_query(None, limit=9), first_page(limit=9)])
def test_statement_reads_no_payments_for_an_unusable_key(
    reading: Api, make_unusable: Callable[[ApiKey], None], query: Query
) -> None:
    """No caller can show them by mistake: without a key, there is no organization whose payments could be read."""
    contents = []
    for change in (lambda _key: None, make_unusable):
        change(reading.key)
        contents.append(query.read_with_key(key_statement().sql, reading.key.digest))

    usable, unusable = contents
    assert "pt_1" in [named(row).id for row in usable.rows]
    assert unusable == Content([])


def move(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(organization_id=OTHER)


def change_mode(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(mode=Mode.TEST)


@pytest.mark.parametrize("change", [move, change_mode])
@pytest.mark.parametrize("query", ["", "status=open"])
def test_key_that_changed_shows_only_its_new_payments(
    reading: Api, change: Callable[[ApiKey], None], query: str
) -> None:
    for organization in (reading.key.organization, OrganizationFactory.create(id=OTHER)):
        for mode in Mode.values:
            PaymentFactory.create(
                id=f"pt_{organization.pk}{mode}", organization=organization, mode=mode, status="open", paid_at=None
            )
    change(reading.key)
    reading.key.refresh_from_db()
    expected = [f"pt_{reading.key.organization_id}{reading.key.mode}"]

    page = reading.get(f"/v2/payments?{query}").json()
    record = reading.get(f"/v2/payments/{expected[0]}")
    foreign = reading.get("/v2/payments/pt_1")

    assert (payment_ids(page), record.status_code, foreign.status_code) == (expected, 200, 404)


def test_used_up_rate_limit_reads_only_the_key(reading: Api, trips: RoundTrips, settings: Settings) -> None:
    settings.PAYMENTS_RATE_LIMIT = RateLimit(1, seconds=600)

    within, first_refused, later = (tables_of(trips, reading.get) for _ in range(3))

    assert (within, first_refused, later) == ([["key", "state", "payment"]], [["key", "state", "payment"]], [["key"]])


def test_revoked_key_is_refused_before_its_rate_limit(reading: Api, settings: Settings) -> None:
    settings.PAYMENTS_RATE_LIMIT = RateLimit(1, seconds=600)
    reading.get()
    revoke(reading.key)

    assert reading.get().status_code == 401


@pytest.fixture
def conditions() -> Iterator[Callable[[str, str], None]]:
    """Return a function that replaces a table by a view, in which a condition is evaluated for each row."""
    hidden: list[str] = []

    def hide(table: str, condition: str) -> None:
        execute(f"ALTER TABLE {table} RENAME TO hidden_{table}")
        execute(f"CREATE VIEW {table} AS SELECT * FROM hidden_{table} WHERE {condition}")  # noqa: S608
        hidden.append(table)

    yield hide
    connection.close()  # it may be aborted, or have a short time limit
    for table in hidden:
        execute(f"DROP VIEW {table}")
        execute(f"ALTER TABLE hidden_{table} RENAME TO {table}")


@pytest.fixture
def hidden_payments(conditions: Callable[[str, str], None]) -> Callable[[str], None]:
    """Return a function that sets a condition for each payment."""
    return partial(conditions, "payments_payment")


SLEEP = "pg_sleep(60)::text = ''"
END = "pg_terminate_backend(pg_backend_pid())"


@pytest.mark.parametrize("query", ["", "status=succeeded"])
def test_timeout_of_the_page_is_no_error_of_the_key(
    reading: Api, hidden_payments: Callable[[str], None], query: str
) -> None:
    hidden_payments(SLEEP)
    execute("SET statement_timeout = '1s'")

    response = reading.get(f"/v2/payments?{query}")
    revoke(reading.key)
    refused = reading.get(f"/v2/payments?{query}")

    assert (response.status_code, refused.status_code) == (503, 401)


def test_connection_that_ends_during_the_page_is_replaced(reading: Api, hidden_payments: Callable[[str], None]) -> None:
    hidden_payments(END)

    broken = reading.get()
    close_old_connections()  # as before each request, except those of the test client
    following = reading.get("/v2/payments?limit=0")

    assert (broken.status_code, following.status_code) == (503, 400)


@pytest.fixture
def short_outages(settings: Settings) -> None:
    """Let a failed read count as an outage although it was short."""
    settings.PAYMENTS_OUTAGE_SECONDS_MIN = 0


@pytest.mark.usefixtures("short_outages")
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (("payments_apikey", END), (200, ["the primary"])),  # it may fail for all payments
        (("payments_accessstate", END), (200, ["the primary"])),
        # The replica would need as long.
        (("payments_accessstate", SLEEP), (503, ["the revisions of an API key"])),
    ],
)
def test_outage_is_one_of_the_primary_or_of_some_payments(
    reading: Api,
    conditions: Callable[[str, str], None],
    caplog: pytest.LogCaptureFixture,
    fault: tuple[str, str],
    expected: tuple[int, list[str]],
) -> None:
    (table, condition), (status, opened) = fault, expected
    conditions(table, f"current_setting('application_name') = 'replica' OR {condition}")
    execute("SET statement_timeout = '1s'")

    with database_as_replica():
        response = reading.get()

    assert response.status_code == status
    assert opened_breakers(caplog) == opened


def opened_breakers(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the names of the circuit breakers that the log reports as opened."""
    messages = [message.partition(" opened: ") for message in caplog.messages]
    return [name.removeprefix("Circuit breaker of ") for name, is_opened, _ in messages if is_opened]
