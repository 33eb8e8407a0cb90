"""The plans by which PostgreSQL reads a page: whatever it knows of the payments, it does not read all of them."""

from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, connection, connections

from payments.listing import Listing
from payments.models import Organization, Payment
from payments.pagination import fetch_page, page_statement
from payments.statements import kept, prepared_statements
from tests.connecting import connected_to
from tests.factories import OrganizationFactory
from tests.migrated import fresh_database
from tests.test_keyset import Place, placed


@pytest.mark.django_db(transaction=True)
def test_the_largest_of_many_organizations_has_its_pages_begin_by_their_id() -> None:
    """Of an average organization's payments all could be read for it: there are few."""
    large, *small = Organization.objects.bulk_create(
        [OrganizationFactory.build(id=number) for number in range(1, 1002)]
    )
    payments = [placed(large, "live", number, f"{number:04}") for number in range(3000)]
    Payment.objects.bulk_create([*payments, *(placed(each, "live", each.id, f"of{each.id}") for each in small)])
    execute("VACUUM ANALYZE payments_payment")

    page = fetch_page(Listing(Place(large.id, "live")), start="pt_1500", limit=20)

    plan = plan_of_page(limit=20, organization_id="1", mode="live", start="pt_1500")
    assert len(page.rows) == 20
    assert plan.count("payments_payment_pkey") == 3, plan  # for the page, the one before it, and the first of all


def test_a_page_that_was_planned_without_statistics_is_planned_again(tmp_path: Path) -> None:
    """As where requests come between the first VACUUM of a table and its first ANALYZE."""
    listing = Listing(Place(1, "live"))

    def plan() -> str:
        """Ask for a page, and return the plan by which it was read."""
        assert len(fetch_page(listing, start="pt_1500", limit=20).rows) == 20
        return plan_of_page(limit=20, organization_id="1", mode="live", start="pt_1500")

    with fresh_database(tmp_path) as url, connected_to(url):
        execute("ALTER TABLE payments_payment SET (autovacuum_enabled = false)")
        organization = OrganizationFactory.create(id=1)
        Payment.objects.bulk_create(placed(organization, "live", number, f"{number:04}") for number in range(3000))
        execute("VACUUM payments_payment")
        without_statistics = plan()
        execute("ANALYZE payments_payment")
        kept(connections[DEFAULT_DB_ALIAS], prepared_statements).plans_end_at = 0.0
        with_statistics = plan()

    assert "payments_payment_pkey" not in without_statistics, "all payments are read to find the one that begins it"
    assert with_statistics.count("payments_payment_pkey") == 3, with_statistics


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def plan_of_page(*, limit: int, **values: str) -> str:
    """Return the plan by which this connection has asked for a page."""
    prepared = kept(connections[DEFAULT_DB_ALIAS], prepared_statements).prepared[page_statement(limit, True).sql]
    given = ", ".join(f"'{values[slot]}'" for slot in prepared.slots)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN EXECUTE {prepared.name.decode()} ({given})")
        return "\n".join(line for (line,) in cursor.fetchall())
