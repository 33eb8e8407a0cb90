"""Query plans of the change feed: a page looks up payments change by change, with any statistics and version."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.core.management import call_command

from payments.database.postgresql.planning import planned_as_pages
from payments.listing.tokens import FeedPosition, format_token
from payments.models import Access, Payment
from tests.support.connecting import connected_to
from tests.support.factories import OrganizationFactory
from tests.support.lists import build_payment, execution_of, read_changes, read_page
from tests.support.migrated import copied_database, name_of
from tests.support.postgresql import DebianPostgresql, breakable_postgresql
from tests.support.sql import buffers_read, execute, plan_of, rows_read

pytestmark = [pytest.mark.only("postgresql"), pytest.mark.processes]

ACCESS = Access(1, "live")
PAYMENTS = 3000
TABLES = ("payments_payment", "payments_change", "payments_accessstate")

# A page of 20 reads at most so many buffers: those of two changes, and without statistics the organization for each of
# their payments. A plan that reads all payments for each change needs ten times as many.
BUFFERS_MAX = 1000

# A page of 20 reads at most so many payments: those of two changes. There are six times as many.
ROWS_MAX = 500


@pytest.fixture(scope="module", params=["PostgreSQL of the tests", "PostgreSQL 15"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server. Versions choose different plans if their costs are nearly equal."""
    if request.param == "PostgreSQL of the tests":
        yield os.environ["DATABASE_URL"]
        return
    with breakable_postgresql(DebianPostgresql) as oldest:
        yield oldest.url


@pytest.fixture(scope="module")
def filled(server: str) -> Iterator[str]:
    """The name of a database with payments that PostgreSQL has not analyzed."""
    with copied_database([server], copy_of="template1") as url:
        with connected_to(url):
            call_command("migrate", verbosity=0)
            for table in TABLES:
                execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
            organizations = [OrganizationFactory.create(id=number) for number in (1, 2)]
            Payment.objects.bulk_create(
                build_payment(organizations[0], "live", number, f"{number:04}") for number in range(PAYMENTS)
            )
        yield name_of(url)


@pytest.fixture(scope="module")
def urls(server: str, filled: str) -> Iterator[dict[bool, str]]:
    """The URLs of two copies, which the tests only read: without statistics, and analyzed."""
    with copied_database([server], copy_of=filled) as raw, copied_database([server], copy_of=filled) as analyzed:
        with connected_to(analyzed):
            for table in TABLES:
                execute(f"VACUUM ANALYZE {table}")
        yield {False: raw, True: analyzed}


@pytest.fixture
def connected(urls: dict[bool, str], is_analyzed: bool) -> Iterator[None]:
    """Connect to a copy that the test only reads."""
    with connected_to(urls[is_analyzed]), planned_as_pages():
        yield


@pytest.fixture
def without_statistics(server: str, filled: str) -> Iterator[None]:
    """Connect to a copy of its own, without statistics."""
    with copied_database([server], copy_of=filled) as url, connected_to(url), planned_as_pages():
        yield


def change_one_by_one(number: int) -> None:
    """Give each of the newest payments a change of its own, by SQL: the ORM would take long."""
    execute(f"""
        WITH newest AS (SELECT id, row_number() OVER (ORDER BY id) AS n FROM payments_payment LIMIT {number}),
            changed AS (
                UPDATE payments_payment SET change_id = n FROM newest WHERE payments_payment.id = newest.id RETURNING n
            )
        INSERT INTO payments_change (organization_id, mode, number, change_id)
        SELECT 1, 'live', (SELECT change_number FROM payments_accessstate) + n, n FROM changed
    """)  # noqa: S608
    execute(f"UPDATE payments_accessstate SET change_number = change_number + {number}")  # noqa: S608


def plan_of_feed(access: Access, *, number: int, limit: int = 20) -> dict[str, Any]:
    """Run a page of the feed that starts at a change, and return its plan."""
    token = format_token(FeedPosition(*access, number=number))
    execution = execution_of(partial(read_changes, access, {"from": token, "limit": limit}))
    return plan_of(execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {execution}"))


def buffers_of_feed(access: Access, *, number: int) -> int:
    """Return how many buffers a page of the feed reads that starts at a change."""
    return buffers_read(plan_of_feed(access, number=number))


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_page_after_a_first_import_reads_few_buffers(connected: None) -> None:
    assert max(buffers_of_feed(ACCESS, number=number) for number in (1, 8, 13)) < BUFFERS_MAX


@pytest.mark.parametrize("avoided", [None, "incremental_sort", "indexscan", "bitmapscan", "nestloop", "sort"])
@pytest.mark.parametrize("is_analyzed", [False, True])
@pytest.mark.parametrize("limit", [1, 20])
def test_page_reads_the_payments_of_few_changes(connected: None, limit: int, avoided: str | None) -> None:
    """A version, a setting or statistics may make PostgreSQL avoid any kind of plan."""
    if avoided:
        execute(f"SET enable_{avoided} = off")

    plans = [plan_of_feed(ACCESS, number=number, limit=limit) for number in (1, 8)]

    assert max(rows_read(plan, "payments_payment") for plan in plans) <= ROWS_MAX


def test_page_after_many_changes_without_new_statistics_reads_few_buffers(without_statistics: None) -> None:
    for table in TABLES:
        execute(f"VACUUM ANALYZE {table}")
    change_one_by_one(2000)

    assert max(buffers_of_feed(ACCESS, number=number) for number in (13, 1000, 2000, 2100)) < BUFFERS_MAX


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_page_of_a_table_larger_than_the_cache_reads_few_buffers(without_statistics: None, is_analyzed: bool) -> None:
    """If PostgreSQL expects to look up many payments outside of its cache, it prefers to read all of them in order."""
    for table in TABLES:
        execute(f"VACUUM {'ANALYZE' if is_analyzed else ''} {table}")
    change_one_by_one(100)
    execute("SET effective_cache_size = 1")
    execute("SET enable_bitmapscan = off")

    assert max(buffers_of_feed(ACCESS, number=number) for number in (1, 50)) < BUFFERS_MAX


def test_indexes_of_the_feed_do_not_replace_that_of_the_list(without_statistics: None) -> None:
    plan = str(execute(f"EXPLAIN {execution_of(partial(read_page, ACCESS))}"))

    assert len(read_page(ACCESS).ids) == 20
    assert "payment_list" in plan, plan
