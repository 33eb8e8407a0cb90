"""What statements read on PostgreSQL: the same with any statistics and version, planned for values or once."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, timedelta
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import Client

from payments.access.keys import AuthenticatedKey, find_key, record_use
from payments.admin.payments.search import fetch_search, search_by_list
from payments.admin.payments.totals import listed_totals
from payments.database.postgresql.planning import planned_as_pages
from payments.listing.tokens import FeedPosition, format_token
from payments.models import Access, AccessState, ApiKey, DayKind, KeyScope, new_change_id
from payments.totals.daily import Calendar, compute_totals
from tests.support.api import Api
from tests.support.connecting import connected_to
from tests.support.factories import NOON, ApiKeyFactory, OrganizationFactory
from tests.support.lines import line, store
from tests.support.lists import read_changes, read_list, read_page, searchable_list
from tests.support.migrated import VARIABLE, copied_database, name_of
from tests.support.postgresql import DebianPostgresql, breakable_postgresql
from tests.support.sql import execute, reads_of

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.processes]

ACCESS = Access(1, "live")
CREATED = Calendar(ACCESS, DayKind.CREATED, "UTC")
PAYMENTS = 10_000
START = "pt_1_5000"
LATER = 6000  # the number of a payment after the start
TABLES = ("payments_payment", "payments_change", "payments_accessstate", "payments_apikey")

# A page of two reads at most so many buffers. To read the index of the list takes 130, and the list with its index 350.
PAGE = 60

# A page of paid days reads so many payments of the list before it uses its index.
# Without statistics of the paid days, PostgreSQL reads the list instead of the index, once for each day.
PAID, PAID_BY_LIST = 250, 600

# Without statistics of the terms, PostgreSQL reads the list, but only once for the page and for the previous page.
LIST = 450

# A page of the feed after many changes, whose payments have moved: it looks up each change.
CHANGES = 150

# Versions choose different plans if their costs are nearly equal.
TESTED, OLDEST = "PostgreSQL of the tests", "PostgreSQL 15"

PLANS = ("force_custom_plan", "force_generic_plan")  # for the values of each request, or once for a connection
STATES = ("unknown", "vacuumed", "analyzed", "analyzed empty", "analyzed without the organization")
USUAL = {(TESTED, "unknown"), (TESTED, "analyzed")}  # the other databases are tested in the second stage


def store_payments(organization: int, mode: str, number: int) -> None:
    """Store payments, 250 in each change, by SQL: the ORM would take long. One in 200 has a rare status."""
    first_change = organization * 1_000_000
    execute(f"""
        INSERT INTO payments_payment (id, organization_id, mode, amount, amount_currency, description, method, status,
            sequence_type, redirect_url, webhook_url, metadata, created_at, paid_at, customer_id, change_id)
        SELECT 'pt_{organization}_' || lpad(n::text, 4, '0'), {organization}, '{mode}', n % 100,
            CASE WHEN n % 1000 = 7 THEN 'CHF' ELSE 'EUR' END,
            'Order ' || n || CASE n % 3 WHEN 0 THEN ' blue' ELSE '' END,
            CASE WHEN n % 1000 = 77 THEN 'rare' ELSE 'creditcard' END,
            CASE n % 200 WHEN 17 THEN 'open' WHEN 18 THEN 'pending' WHEN 19 THEN 'failed' ELSE 'succeeded' END,
            'oneoff', '', '', '{{"number":"' || n || '","shop":"web"}}', timestamptz '{NOON}' + n * interval '1 minute',
            timestamptz '{NOON}' + (n + CASE n % 50 WHEN 8 THEN 2880 ELSE 1 END) * interval '1 minute',
            'ct_' || n / 10, {first_change} + n / 250
        FROM generate_series(0, {number - 1}) AS n
    """)  # noqa: S608
    execute(f"""
        INSERT INTO payments_change (organization_id, mode, number, change_id)
        SELECT {organization}, '{mode}', n + 1, {first_change} + n FROM generate_series(0, {(number - 1) // 250}) AS n
    """)  # noqa: S608
    execute(f"""
        INSERT INTO payments_accessstate (organization_id, mode, revision, change_number, change_id, epoch)
        SELECT organization_id, mode, change_id, number, change_id, 0 FROM payments_change
        WHERE organization_id = {organization} ORDER BY number DESC LIMIT 1
    """)  # noqa: S608


def store_organizations() -> ApiKey:
    own, *_ = [OrganizationFactory.create(id=number) for number in range(1, 101)]
    return ApiKeyFactory.create(organization=own)


def store_others() -> None:
    """Store the payments of other organizations: one has 500, and each of the others has one."""
    store_payments(2, "test", 500)
    for organization in range(3, 101):
        store_payments(organization, "test", 1)


def store_own() -> None:
    """Store the payments of the organization whose pages the tests read, and more API keys."""
    store_payments(*ACCESS, PAYMENTS)
    execute("""
        INSERT INTO payments_apikey (organization_id, mode, scope, name, digest, hint, created_at)
        SELECT 2, 'live', 'read', 'Tests', n, 'abcd', now() FROM generate_series(1, 1000) AS n
    """)


class State(NamedTuple):
    """The state of a database's statistics, and an API key."""

    name: str
    key: ApiKey


class Prepared(NamedTuple):
    """The URLs of a server and, for each of `STATES`, of a database with an API key, which the tests leave as it is.

    `source` is a copy of the first one without connections, which PostgreSQL requires to copy it.
    """

    server: str
    source: str
    urls: dict[str, str]
    key: ApiKey


@contextmanager
def prepared_server(version: str) -> Iterator[Prepared]:
    tables = ", ".join(TABLES)
    with ExitStack() as stack:

        def copy(url: str, *steps: str | Callable[[], object]) -> str:
            copied: str = stack.enter_context(copied_database([server], copy_of=name_of(url)))
            with connected_to(copied):
                for step in steps:
                    execute(step) if isinstance(step, str) else step()
            return copied

        server, migrated = os.environ["DATABASE_URL"], os.environ[VARIABLE]
        if version == OLDEST:
            server, migrated = stack.enter_context(breakable_postgresql(DebianPostgresql)).url, "template1"
        empty = stack.enter_context(copied_database([server], copy_of=migrated))
        with connected_to(empty):
            if version == OLDEST:
                call_command("migrate", verbosity=0)
            for table in TABLES:
                execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
            key = store_organizations()
        others = copy(empty, store_others)
        unknown = copy(others, store_own)
        urls = (
            copy(unknown),
            copy(unknown, f"VACUUM {tables}"),
            copy(unknown, f"VACUUM ANALYZE {tables}"),
            copy(empty, f"ANALYZE {tables}", store_others, store_own),
            copy(others, f"VACUUM ANALYZE {tables}", store_own),
        )
        yield Prepared(server, unknown, dict(zip(STATES, urls, strict=True)), key)


@pytest.fixture(scope="module")
def prepare() -> Iterator[Callable[[str], Prepared]]:
    """Return a function for the server of a version, which starts when it is first needed."""
    with ExitStack() as stack:
        yield cache(lambda version: stack.enter_context(prepared_server(version)))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(tested, id=", ".join(tested), marks=[] if tested in USUAL else [pytest.mark.extended])
        for tested in product((TESTED, OLDEST), STATES)
    ],
)
def state(request: pytest.FixtureRequest, prepare: Callable[[str], Prepared]) -> Iterator[State]:
    """Connect to a database."""
    version, name = request.param
    prepared = prepare(version)
    with connected_to(prepared.urls[name]), planned_as_pages():
        yield State(name, prepared.key)


@pytest.fixture
def api(client: Client, state: State) -> Api:
    return Api(client, state.key)


def page(**parameters: str) -> Callable[[Api], object]:
    """Return the read of a page of two payments with these parameters."""
    return lambda _api: read_page(ACCESS, {"limit": 2, **parameters})


def changes(number: int, *, limit: int = 2) -> Callable[[Any], object]:
    """Return the read of a page of the feed that starts at a change."""
    token = format_token(FeedPosition(*ACCESS, number=number))
    return lambda _api: read_changes(ACCESS, {"limit": limit, "from": token})


def request(path: str = "/v2/payments", **parameters: Any) -> Callable[[Api], object]:
    """Return the request of a client: one statement reads the key and the content."""
    return lambda api: respond(api, path, **parameters)


def respond(api: Api, path: str, **parameters: Any) -> Any:
    response = api.get(path, **parameters)
    assert response.status_code == 200, response.content
    return response


def repeated_request(api: Api) -> None:
    """Ask for a page that the client knows: one statement reads the key and the revision."""
    response = api.send("GET", "/v2/payments", If_None_Match=respond(api, "/v2/payments", limit=1)["ETag"])
    assert response.status_code in {200, 304}


def undone(write: Callable[[Api], object]) -> Callable[[Api], object]:
    """Return the write, rolled back afterwards."""

    def run(api: Api) -> None:
        with transaction.atomic():
            write(api)
            transaction.set_rollback(True)

    return run


def use_key(api: Api) -> None:
    record_use(AuthenticatedKey(api.key.pk, ACCESS, KeyScope.READ, api.key.digest, None))


def number_changes(_api: Api) -> None:
    AccessState.objects.record({ACCESS: [new_change_id() for _ in range(20)]}, days={})


def import_twenty(first: int) -> Callable[[Api], object]:
    """Return the import of 20 payments, which are stored with other values or, from `PAYMENTS` on, not stored."""
    lines = [
        line(
            id=f"pt_1_{number:04}",
            organizationId="1",
            createdAt=f"{NOON.replace(tzinfo=None) + timedelta(minutes=number):%Y-%m-%dT%H:%M:%S.000}",
        )
        for number in range(first, first + 20)
    ]
    return lambda _api: store(lines)


def search(word: str, **parameters: str) -> Callable[[Api], object]:
    """Return the search by the index of terms."""
    return lambda _api: fetch_search(searchable_list(ACCESS, parameters), [word], start=START, limit=2)


class Case(NamedTuple):
    """A use of the public code, and the most buffers that it reads, also without statistics of the organization."""

    run: Callable[[Api], object]
    buffers: int = PAGE
    buffers_without_statistics: int | None = None


# Without a start, the list has them soon. From `START`, it has them late.
DAYS = {"paidAt[gte]": "2026-01-02", "paidAt[lt]": "2026-01-03"}

# By the kind of statement. The limits of a filter with terms differ: without statistics, none shows that it is rare.
CASES = {
    "first page": Case(request(limit=2)),
    "page from a start": Case(request(limit=2, from_=START)),
    "page in ascending order": Case(request(limit=2, from_=START, sort="asc")),
    "page read after its key": Case(page(**{"from": START})),
    "page that the client knows": Case(repeated_request),
    "one payment": Case(request(f"/v2/payments/{START}")),
    "first page of the feed": Case(request("/v2/payments/changes", limit=2)),
    "end of the feed": Case(request("/v2/payments/changes", from_="now")),
    "feed from its first change": Case(changes(1)),
    "feed from a late change": Case(changes(30)),
    "unknown key": Case(lambda _api: find_key("unknown")),
    "use of a key": Case(undone(use_key)),
    **{
        f"{name}, {'from a start' if start else 'first page'}": Case(page(**parameters, **start), buffers, without)
        for name, parameters, buffers, without in (
            ("status", {"status": "failed"}, PAGE, None),
            ("two statuses", {"status": "pending,failed"}, 120, None),
            ("statuses in flight", {"status": "open,pending"}, PAGE, None),
            ("frequent status", {"status": "succeeded"}, PAGE, None),
            ("customer", {"customerId": "ct_300"}, PAGE, None),
            ("two customers", {"customerId": "ct_300,ct_400"}, PAGE, LIST),
            ("range", {"createdAt[gte]": "2026-01-02", "createdAt[lt]": "2026-01-08"}, 150, None),
            ("paid days", DAYS, PAID, PAID_BY_LIST),
            ("paid days and frequent method", {**DAYS, "method": "creditcard"}, PAID, PAID_BY_LIST),
            ("paid days and rare method", {**DAYS, "method": "rare"}, PAID + PAGE, PAID_BY_LIST + LIST),
            ("method", {"method": "rare"}, PAGE, LIST),
            ("frequent method", {"method": "creditcard"}, PAGE, None),
            ("currency", {"currency": "CHF"}, PAGE, LIST),
            ("metadata", {"metadata[number]": "4007"}, PAGE, LIST),
            ("frequent metadata", {"metadata[shop]": "web"}, PAGE, None),
        )
        for start in ({}, {"from": START})
    },
    "search by the index": Case(search(":4007"), PAGE, LIST),
    "search by the index with a filter": Case(search(":4007", status="failed"), PAGE, LIST),
    "search by the list": Case(
        lambda _api: read_list(search_by_list(searchable_list(ACCESS), [":blue"]), start=START, limit=2)
    ),
    "totals of a day": Case(lambda _api: compute_totals(CREATED, [date(2026, 1, 3)]), 100),
    "totals of a list": Case(
        lambda _api: listed_totals(searchable_list(ACCESS, {"status": "failed"}), payments_max=10_000), 100
    ),
    "import of changed payments": Case(undone(import_twenty(LATER)), 900),
    "import of new payments": Case(undone(import_twenty(PAYMENTS)), 900),
    "numbering of changes": Case(undone(number_changes), 150),
}


@pytest.mark.parametrize("name", CASES)
def test_statement_reads_few_buffers(state: State, api: Api, name: str) -> None:
    case = CASES[name]
    buffers_max = case.buffers if state.name == "analyzed" else case.buffers_without_statistics or case.buffers
    case.run(api)  # compile it
    for plan in PLANS:
        execute(f"SET plan_cache_mode = {plan}")
        reads = reads_of(partial(case.run, api))

        assert reads.buffers <= buffers_max, (plan, reads)
        assert not reads.sequential, (plan, reads)


@pytest.mark.parametrize("avoided", ["incremental_sort", "indexscan", "bitmapscan", "nestloop", "sort"])
@pytest.mark.parametrize("limit", [1, 20])
def test_feed_reads_few_buffers_with_any_kind_of_plan(state: State, limit: int, avoided: str) -> None:
    """A version, a setting or statistics may make PostgreSQL avoid any kind of plan."""
    execute(f"SET enable_{avoided} = off; DISCARD PLANS")

    reads = [reads_of(partial(changes(number, limit=limit), None)) for number in (1, 30)]

    execute(f"RESET enable_{avoided}; DISCARD PLANS")
    assert max(read.buffers for read in reads) <= PAGE


def change_one_by_one(number: int) -> None:
    """Give each of the oldest payments a change of its own, by SQL: the ORM would take long."""
    execute(f"""
        WITH changed AS (
            UPDATE payments_payment SET change_id = n FROM generate_series(1, {number}) AS n
            WHERE id = 'pt_1_' || lpad(n::text, 4, '0') RETURNING n
        )
        INSERT INTO payments_change (organization_id, mode, number, change_id)
        SELECT 1, 'live', {PAYMENTS // 250} + n, n FROM changed
    """)  # noqa: S608


@pytest.mark.parametrize("version", [TESTED, pytest.param(OLDEST, marks=pytest.mark.extended)])
@pytest.mark.parametrize("analyze", ["", "ANALYZE"])
@pytest.mark.parametrize(
    ("number", "settings"),
    [
        (2000, []),
        # If PostgreSQL expects to look up payments outside of its cache, it prefers to read all of them in order.
        (100, ["SET effective_cache_size = 1", "SET enable_bitmapscan = off"]),
    ],
)
def test_feed_after_many_changes_reads_few_buffers(
    prepare: Callable[[str], Prepared], version: str, number: int, settings: list[str], analyze: str
) -> None:
    prepared = prepare(version)
    with (
        copied_database([prepared.server], copy_of=name_of(prepared.source)) as url,
        connected_to(url),
        planned_as_pages(),
    ):
        execute(f"VACUUM {analyze} {', '.join(TABLES)}")
        change_one_by_one(number)
        for setting in settings:
            execute(setting)

        reads = [
            reads_of(partial(changes(first, limit=20), None)) for first in (1, 38, 41, 40 + number // 2, 39 + number)
        ]

    assert max(read.buffers for read in reads) <= CHANGES
