"""Query plans of the change feed on PostgreSQL: a page looks up payments change by change, with any statistics."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, connections

from payments.changes import changes_query
from payments.database.postgresql.planning import planned_as_pages
from payments.database.runners import prepared_statements
from payments.listing import Listing
from payments.models import Access, Payment
from payments.page import fetch_page, page_statement
from payments.tokens import NEVER_CHANGED, Position
from tests.support.connecting import connected_to
from tests.support.factories import OrganizationFactory
from tests.support.histories import begin_feed
from tests.support.lists import build_payment
from tests.support.migrated import database, fresh_database, name_of
from tests.support.sql import buffers_read, execute, plan_of

ACCESS = Access(1, "live")
PAYMENTS = 3000
TABLES = ("payments_payment", "payments_change", "payments_accessstate")

# A page of 20 reads at most so many buffers: those of two changes, and without statistics the organization for each of
# their payments. A plan that reads all payments for each change needs ten times as many.
BUFFERS_MAX = 1000

# A search of the primary key for the payments of an organization that has none needs more.
UNCHANGED_BUFFERS_MAX = 60


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with payments that PostgreSQL has not analyzed."""
    with fresh_database(tmp_path_factory.mktemp("filled")) as url:
        with connected_to(url):
            for table in TABLES:
                execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
            organizations = [OrganizationFactory.create(id=number) for number in (1, 2)]
            Payment.objects.bulk_create(
                build_payment(organizations[0], "live", number, f"{number:04}") for number in range(PAYMENTS)
            )
        yield name_of(url)


@pytest.fixture
def without_statistics(filled: str, tmp_path: Path) -> Iterator[None]:
    """Connect to a copy of the database without statistics."""
    with database(tmp_path, copy_of=filled) as url, connected_to(url), planned_as_pages():
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


def buffers_of_feed(access: Access, *, number: int) -> int:
    """Return how many buffers a page of the feed reads that starts at a change."""
    listing, position = Listing(access), Position(*access, NEVER_CHANGED, number=number)
    query = changes_query(listing, position, limit=20)
    query.rows()
    prepared = prepared_statements(connections[DEFAULT_DB_ALIAS]).statements[query.statement.sql]
    arguments = ", ".join(f"'{query.values[name]}'" for name in prepared.placeholders)
    name = prepared.name.decode()
    return buffers_read(plan_of(execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name} ({arguments})")))


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_page_after_a_first_import_reads_few_buffers(without_statistics: None, is_analyzed: bool) -> None:
    for table in TABLES if is_analyzed else ():
        execute(f"ANALYZE {table}")

    assert max(buffers_of_feed(ACCESS, number=number) for number in (0, 1, 8, 13)) < BUFFERS_MAX


def test_page_after_many_changes_without_new_statistics_reads_few_buffers(without_statistics: None) -> None:
    for table in TABLES:
        execute(f"VACUUM ANALYZE {table}")
    change_one_by_one(2000)

    assert max(buffers_of_feed(ACCESS, number=number) for number in (13, 1000, 2000, 2100)) < BUFFERS_MAX


@pytest.mark.parametrize("vacuum", ["VACUUM", "VACUUM ANALYZE"])
@pytest.mark.parametrize("access", [ACCESS, Access(2, "live")], ids=["with payments", "without payments"])
def test_first_page_after_an_upgrade_reads_few_buffers(without_statistics: None, access: Access, vacuum: str) -> None:
    begin_feed()
    for table in TABLES:
        execute(f"{vacuum} {table}")

    assert buffers_of_feed(access, number=0) < UNCHANGED_BUFFERS_MAX


@pytest.mark.parametrize("is_analyzed", [False, True])
def test_page_of_a_table_larger_than_the_cache_reads_few_buffers(without_statistics: None, is_analyzed: bool) -> None:
    """If PostgreSQL expects to look up many payments outside of its cache, it prefers to read all of them in order."""
    begin_feed()
    for table in TABLES:
        execute(f"VACUUM {'ANALYZE' if is_analyzed else ''} {table}")
    change_one_by_one(100)
    execute("SET effective_cache_size = 1; SET enable_bitmapscan = off")

    assert max(buffers_of_feed(ACCESS, number=number) for number in (0, 1, 50)) < BUFFERS_MAX


def test_indexes_of_the_feed_do_not_replace_that_of_the_list(without_statistics: None) -> None:
    page = fetch_page(Listing(ACCESS), start=None, limit=20)
    prepared = prepared_statements(connections[DEFAULT_DB_ALIAS]).statements[page_statement(20, False).sql]

    arguments = ", ".join({"organization_id": "1", "mode": "'live'"}[name] for name in prepared.placeholders)
    plan = str(execute(f"EXPLAIN EXECUTE {prepared.name.decode()} ({arguments})"))
    assert len(page.rows) == 20
    assert "payment_list" in plan, plan
