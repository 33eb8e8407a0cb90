"""Query plans of a page on PostgreSQL: a page never reads the whole list."""

from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, connections

from payments.database.runners import prepared_statements
from payments.listing import Listing
from payments.models import Access, Organization, Payment
from payments.page import fetch_page, page_statement
from tests.support.connecting import connected_to
from tests.support.factories import OrganizationFactory
from tests.support.lists import build_payment
from tests.support.migrated import fresh_database
from tests.support.sql import execute

pytestmark = pytest.mark.only("postgresql")

# The statement searches for the start three times: for the page, for the previous page, and for the first payment.
SEARCHES_FOR_START = 3


@pytest.mark.django_db(transaction=True)
def test_start_is_found_by_its_id_in_the_largest_organization() -> None:
    """An organization of average size has so few payments that PostgreSQL would read all of them."""
    large, *small = Organization.objects.bulk_create(
        [OrganizationFactory.build(id=number) for number in range(1, 1002)]
    )
    payments = [build_payment(large, "live", number, f"{number:04}") for number in range(3000)]
    payments += [build_payment(organization, "live", organization.id, f"of{organization.id}") for organization in small]
    Payment.objects.bulk_create(payments)
    execute("VACUUM ANALYZE payments_payment")

    page = fetch_page(Listing(Access(large.id, "live")), start="pt_1500", limit=20)

    plan = plan_of_page(limit=20, organization_id="1", mode="live", start="pt_1500")
    assert len(page.rows) == 20
    assert plan.count("payments_payment_pkey") == SEARCHES_FOR_START, plan


def test_plan_made_without_statistics_is_replaced(tmp_path: Path) -> None:
    """Requests can arrive between the first VACUUM of a table and its first ANALYZE."""
    listing = Listing(Access(1, "live"))

    def plan() -> str:
        """Fetch a page and return its query plan."""
        assert len(fetch_page(listing, start="pt_1500", limit=20).rows) == 20
        return plan_of_page(limit=20, organization_id="1", mode="live", start="pt_1500")

    with fresh_database(tmp_path) as url, connected_to(url):
        execute("ALTER TABLE payments_payment SET (autovacuum_enabled = false)")
        organization = OrganizationFactory.create(id=1)
        Payment.objects.bulk_create(
            build_payment(organization, "live", number, f"{number:04}") for number in range(3000)
        )
        execute("VACUUM payments_payment")
        without_statistics = plan()
        execute("ANALYZE payments_payment")
        prepared_statements(connections[DEFAULT_DB_ALIAS]).plans_expire_at = 0.0
        with_statistics = plan()

    assert "payments_payment_pkey" not in without_statistics, "expected a plan that searches all payments for the start"
    assert with_statistics.count("payments_payment_pkey") == SEARCHES_FOR_START, with_statistics


def plan_of_page(*, limit: int, **values: str) -> str:
    """Return the query plan that this connection uses for a page."""
    statements = prepared_statements(connections[DEFAULT_DB_ALIAS]).statements
    prepared = statements[page_statement(limit, True).sql]
    arguments = ", ".join(f"'{values[name]}'" for name in prepared.placeholders)
    return "\n".join(line for (line,) in execute(f"EXPLAIN EXECUTE {prepared.name.decode()} ({arguments})"))
