"""Query plans of a page on PostgreSQL: a page never reads the whole list."""

from functools import partial
from pathlib import Path

import pytest
from django.db import connection

from payments.models import Access, Organization, Payment
from tests.support.connecting import connected_to
from tests.support.factories import OrganizationFactory
from tests.support.lists import build_payment, execution_of, read_page
from tests.support.migrated import fresh_database
from tests.support.sql import execute

pytestmark = pytest.mark.only("postgresql")

# The statement searches for the start three times: for the page, for the previous page, and for the first payment.
SEARCHES_FOR_START = 3

read = partial(read_page, Access(1, "live"), {"from": "pt_1500"})


def plan_of_page() -> str:
    """Return the query plan that this connection uses for a page."""
    return "\n".join(line for (line,) in execute(f"EXPLAIN {execution_of(read)}"))


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

    page, plan = read(), plan_of_page()

    assert len(page.ids) == 20
    assert plan.count("payments_payment_pkey") == SEARCHES_FOR_START, plan


def test_new_connection_replaces_a_plan_made_without_statistics(tmp_path: Path) -> None:
    """Requests can arrive between the first VACUUM of a table and its first ANALYZE."""
    with fresh_database(tmp_path) as url, connected_to(url):
        execute("ALTER TABLE payments_payment SET (autovacuum_enabled = false)")
        organization = OrganizationFactory.create(id=1)
        Payment.objects.bulk_create(
            build_payment(organization, "live", number, f"{number:04}") for number in range(3000)
        )
        execute("VACUUM payments_payment")
        without_statistics = plan_of_page()
        execute("ANALYZE payments_payment")
        connection.close()  # as after a minute (CONN_MAX_AGE)
        with_statistics = plan_of_page()

    assert "payments_payment_pkey" not in without_statistics, "expected a plan that searches all payments for the start"
    assert with_statistics.count("payments_payment_pkey") == SEARCHES_FOR_START, with_statistics
