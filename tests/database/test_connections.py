"""After a fault of a connection to PostgreSQL, responses are correct, and arrive in time."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from queue import Queue
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, transaction
from psycopg.pq import TransactionStatus
from pytest_django import DjangoDbBlocker, Settings

from payments.database.postgresql.base import TimedConnection
from payments.models import Mode, Organization
from payments.runtime.process import process
from tests.support.api import Api, wsgi_application
from tests.support.connecting import connected_to
from tests.support.exchange import Request, Response, call_application
from tests.support.factories import ApiKeyFactory, OrganizationFactory, PaymentFactory
from tests.support.lines import compact, issue_key
from tests.support.list_errors import slow_payments
from tests.support.lists import read_page
from tests.support.postgresql import BreakablePostgresql, breakable_postgresql
from tests.support.sql import execute, fetch_value
from tests.support.threads import in_thread
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only("postgresql")]

# The server keeps a plan of each prepared statement, so a connection has at most so many of them.
STATEMENTS_MAX = 100

PATHS = [
    "/v2/payments",
    "/v2/payments?limit=1&from=pt_1",
    "/v2/payments?status=succeeded&sort=asc",
    "/v2/payments/changes",
    "/v2/payments/pt_1",
]


def send(authorization: dict[str, str], path: str = "/v2/payments", **headers: str) -> Response:
    """Return the response of a worker in this process."""
    fields = {"Host": "testserver", "X-Request-ID": "1", **authorization, **headers}
    return call_application(wsgi_application(), Request(f"GET {path}", tuple(fields.items())))


@pytest.fixture
def known(api: Api, organization: Organization) -> Iterator[Api]:
    """A client whose key the process has seen, over a new connection."""
    PaymentFactory.create_batch(3, organization=organization)
    PaymentFactory.create(id="pt_1", organization=organization)
    connection.close()
    assert api.get().status_code == 200
    yield api
    connection.close()


def responses(api: Api) -> list[tuple[int, bytes]]:
    """Return the responses to requests of each kind, and of a client that knows one of them."""
    sent = [send(api.authorization, path) for path in PATHS]
    known_etag = str(sent[0].header("ETag"))
    sent.append(send(api.authorization, "/v2/payments", **{"If-None-Match": known_etag}))
    return [(response.status, response.body) for response in sent]


@pytest.fixture
def altered() -> Iterator[Callable[[str, str], None]]:
    """Return a function that gives a column of a table another type."""
    undo: list[str] = []

    def alter(column: str, new_type: str) -> None:
        table, name = column.split(".")
        old_type = fetch_value(
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "  # noqa: S608
            f"WHERE attrelid = '{table}'::regclass AND attname = '{name}'"
        )
        undo.append(f"ALTER TABLE {table} ALTER {name} TYPE {old_type}")
        execute(f"ALTER TABLE {table} ALTER {name} TYPE {new_type}")

    yield alter
    for statement in undo:
        execute(statement)


@pytest.mark.parametrize(
    ("column", "new_type"),
    [
        ("payments_payment.description", "varchar(300)"),
        ("payments_apikey.mode", "varchar(5)"),
        ("payments_accessstate.revision", "numeric"),
    ],
)
def test_statements_work_after_a_table_has_changed(
    known: Api, altered: Callable[[str, str], None], column: str, new_type: str
) -> None:
    before = responses(known)

    altered(column, new_type)

    assert [status for status, _ in before] == [200] * len(PATHS) + [304]
    assert [responses(known) for _ in range(2)] == [before] * 2


def test_statements_work_on_a_server_connection_that_lacks_them(known: Api) -> None:
    """A pooler may give each transaction another server connection."""
    before = responses(known)

    execute("DEALLOCATE ALL")

    assert [responses(known) for _ in range(2)] == [before] * 2


def test_page_within_a_transaction_is_part_of_it(known: Api) -> None:
    with transaction.atomic():
        assert read_page(known.key.access).ids
        assert connection.connection.info.transaction_status == TransactionStatus.INTRANS


def prepared() -> list[tuple[str, int]]:
    """Return the statements that the server has prepared for this connection, and how often each has run."""
    return execute("SELECT statement, generic_plans FROM pg_prepared_statements WHERE NOT from_sql")


def test_connection_keeps_the_statements_that_were_used_last(known: Api) -> None:
    for limit in range(1, STATEMENTS_MAX + 50):
        page = json.loads(send(known.authorization, f"/v2/payments?limit={limit}").body)
        assert page["count"] == min(limit, 4)
        send(known.authorization, "/v2/payments?limit=250")

    statements = prepared()
    assert STATEMENTS_MAX // 2 < len(statements) <= STATEMENTS_MAX
    assert [runs for sql, runs in statements if "LIMIT 251" in sql] == [STATEMENTS_MAX + 49]


def test_statement_serves_all_organizations_and_starts(known: Api) -> None:
    other = OrganizationFactory.create(id=2)
    keys = [ApiKeyFactory.create(organization=other, mode=mode) for mode in Mode.values]
    for key in keys:
        PaymentFactory.create(id=f"pt_{key.mode}", organization=key.organization, mode=key.mode)
    starts = [(known, "pt_1"), *((Api(known.client, key), f"pt_{key.mode}") for key in keys)]

    for client, start in starts:
        assert send(client.authorization, f"/v2/payments?limit=9&from={start}").status == 200

    assert [runs for sql, runs in prepared() if "LIMIT 10" in sql] == [len(starts)]


def test_large_page_arrives_completely(known: Api, organization: Organization) -> None:
    details = {"note": "é" * 32_000}  # nearly the longest record
    PaymentFactory.create_batch(250, organization=organization, details=compact(details).decode())

    payments = json.loads(send(known.authorization, "/v2/payments?limit=250").body)["_embedded"]["payments"]

    assert [payment["details"] for payment in payments] == [details] * 250


@pytest.fixture
def administrator() -> Iterator[psycopg.Connection[Any]]:
    connection.ensure_connection()
    info = connection.connection.info
    with psycopg.connect(info.dsn, password=info.password, autocommit=True) as other:
        yield other


def test_connection_that_the_server_ended_is_replaced_before_use(
    known: Api, administrator: psycopg.Connection[Any]
) -> None:
    process_id = connection.connection.info.backend_pid
    administrator.execute("SELECT pg_terminate_backend(%s, 5000)", [process_id])

    assert send(known.authorization).status == 200
    assert connection.connection.info.backend_pid != process_id


@pytest.mark.parametrize("is_new", [False, True])
def test_connection_that_is_lost_before_its_use_fails_one_request(known: Api, is_new: bool) -> None:
    if is_new:
        connection.close()
        connection.ensure_connection()
    connection.connection.close()

    lost = known.get()  # the client in this process does not check its connection before a request

    assert (lost.status_code, send(known.authorization).status) == (503, 200)


def test_statement_of_an_interrupted_request_is_canceled(known: Api, administrator: psycopg.Connection[Any]) -> None:
    process_id = connection.connection.info.backend_pid

    def is_asleep() -> bool:
        query = "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = %s"
        return administrator.execute(query, [process_id]).fetchone() == (True,)

    def interrupt_when_it_sleeps() -> None:
        wait_until(is_asleep)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt_when_it_sleeps)
    with slow_payments(administrator, user="public"), ExitStack() as stack:
        stack.callback(administrator.execute, "SELECT pg_terminate_backend(%s, 5000)", [process_id])
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            send(known.authorization)
        thread.join()
        still_runs = is_asleep()
        following = send(known.authorization, "/v2/payments?limit=0")

    assert (still_runs, following.status) == (False, 400)


# A server that does not respond


@pytest.fixture(scope="module")
def breakable(django_db_blocker: DjangoDbBlocker) -> Iterator[BreakablePostgresql]:
    with breakable_postgresql() as server:
        with django_db_blocker.unblock(), connected_to(server.url):
            call_command("migrate", verbosity=0)
            PaymentFactory.create_batch(3, organization=OrganizationFactory.create(id=1))
        yield server


@pytest.fixture
def authorization(breakable: BreakablePostgresql) -> Iterator[dict[str, str]]:
    """The header of a client that has just had a response from a server, which the test can freeze."""
    with connected_to(breakable.url):
        header = {"Authorization": f"Bearer {issue_key(organization=1, mode='live')}"}
        for _ in range(2):
            assert send(header).status == 200
        yield header


PathOf = Callable[[dict[str, str]], str]


def same_page(_authorization: dict[str, str]) -> str:
    return "/v2/payments"


def new_statement(_authorization: dict[str, str]) -> str:
    return "/v2/payments?limit=7"


def filtered_page(_authorization: dict[str, str]) -> str:
    return "/v2/payments?status=open"


def one_statement_too_many(authorization: dict[str, str]) -> str:
    for limit in range(1, STATEMENTS_MAX + 10):
        send(authorization, f"/v2/payments?limit={limit}")
    return "/v2/payments?limit=250"


@pytest.mark.processes
@pytest.mark.parametrize("path_of", [same_page, new_statement, filtered_page, one_statement_too_many])
def test_request_to_a_frozen_server_ends_at_the_deadline(
    breakable: BreakablePostgresql, authorization: dict[str, str], settings: Settings, path_of: PathOf
) -> None:
    path = path_of(authorization)
    with breakable.frozen():
        settings.PAYMENTS_REQUEST_SECONDS_MAX = 0
        late = send(authorization, path)
    settings.PAYMENTS_REQUEST_SECONDS_MAX = 60

    assert (late.status, send(authorization, path).status) == (503, 200)


@pytest.mark.processes
def test_request_to_a_frozen_server_lets_other_threads_run(
    breakable: BreakablePostgresql, authorization: dict[str, str]
) -> None:
    """If the wait held the global lock, the thread that thaws the server could not run: the test would hang."""
    opened: Queue[psycopg.Connection[Any]] = Queue()
    statuses: list[int] = []

    def request() -> None:
        with connected_to(breakable.url):
            statuses.append(send(authorization).status)
            opened.put(connection.connection)
            frozen.wait()
            statuses.append(send(authorization).status)

    frozen = threading.Event()
    thread = in_thread(request)
    thread.start()
    driver = opened.get()
    with breakable.frozen():
        frozen.set()
        wait_until(lambda: driver.info.transaction_status == TransactionStatus.ACTIVE)
    thread.join()

    assert statuses == [200, 200]


def run_statement(driver: psycopg.Connection[Any]) -> None:
    driver.execute("SELECT 1")


@pytest.mark.processes
@pytest.mark.parametrize("wait", [run_statement, psycopg.Connection.commit])
def test_wait_for_a_frozen_server_ends_at_the_deadline(
    breakable: BreakablePostgresql, wait: Callable[[psycopg.Connection[Any]], None], settings: Settings
) -> None:
    with TimedConnection.connect(breakable.url) as driver:
        driver.execute("SELECT 1")
        settings.PAYMENTS_REQUEST_SECONDS_MAX = 0
        late = pytest.raises(psycopg.OperationalError, match="before the deadline")
        with breakable.frozen(), process.deadline, late:
            wait(driver)

        assert driver.closed
