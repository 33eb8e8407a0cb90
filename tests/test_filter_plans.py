"""Query plans: a page with filters is searched in the right index.

The payments stay in the database for the whole module. Add no tests here that store payments.
"""

import re
from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker

from payments.models import Access, Mode, Organization, Payment, Status
from payments.page import fetch_page
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.lists import listing, moment

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def many(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Access]:
    """Store 2,000 payments, few of them open, pending or failed, and update the statistics of the database."""
    with django_db_blocker.unblock(), transaction.atomic():
        organization = OrganizationFactory.create(id=1)
        Payment.objects.bulk_create(numbered(number, organization) for number in range(2000))
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SELECT gin_clean_pending_list('payment_holds')")  # as it does by itself, in time
            cursor.execute("ANALYZE")
        yield Access(organization.pk, Mode.LIVE)
        transaction.set_rollback(True)


def numbered(number: int, organization: Organization) -> Payment:
    rare = {17: Status.OPEN, 18: Status.PENDING, 19: Status.FAILED}
    return PaymentFactory.build(
        id=f"pt_{number:04}",
        organization=organization,
        created_at=moment(number),
        status=rare.get(number % 100, Status.SUCCEEDED),
        method="rare" if number == 77 else "creditcard",
        customer_id=f"ct_{number // 10}" if number % 2 else "",
        metadata=f'{{"number":"{number}","shop":"web"}}',
    )


def plan(place: Access, query: dict[str, str], *, start: str | None) -> str:
    """Return how the database looks for a page."""
    with CaptureQueriesContext(connection) as queries:
        fetch_page(listing(place, query), start=start, limit=20)
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN (COSTS OFF) "
    with connection.cursor() as cursor:
        cursor.execute(explain + queries[-1]["sql"])
        return "\n".join(str(line[-1]) for line in cursor.fetchall())


@pytest.mark.parametrize("start", [None, "pt_0500"])
@pytest.mark.parametrize(
    ("query", "index"),
    [
        ({"sort": "asc"}, "payment_list"),
        ({"status": "succeeded"}, "payment_list"),
        ({"status": "succeeded,failed"}, "payment_list"),
        ({"status": "failed"}, "payment_status"),
        ({"status": "canceled", "sort": "asc"}, "payment_status"),
        ({"status": "open,pending"}, "payment_in_flight"),
        ({"status": "authorized,open,pending"}, "payment_in_flight"),
        ({"customerId": "ct_7"}, "payment_customer"),
        ({"createdAt[gte]": "2025-12-31", "createdAt[lt]": "2026-01-02", "sort": "asc"}, "payment_list"),
        ({"createdAt[gte]": "2025-12-31", "createdAt[lte]": "2026-01-02"}, "payment_list"),
        ({"metadata[number]": "7"}, "payment_holds"),
        ({"metadata[number]": "7", "metadata[shop]": "web"}, "payment_holds"),
        ({"metadata[shop]": "web"}, "payment_list"),
        ({"method": "rare"}, "payment_holds"),
        ({"method": "creditcard"}, "payment_list"),
        ({"currency": "CHF"}, "payment_holds"),
        ({"sequenceType": "first,recurring"}, "payment_holds"),
    ],
)
def test_what_is_asked_for_is_found_by_the_index_that_is_for_it(
    many: Access, query: dict[str, str], index: str, start: str | None
) -> None:
    if index == "payment_holds" and connection.vendor == "sqlite":
        index = "payment_list"  # which it reads through

    found = plan(many, query, start=start)

    assert index in found, found
    assert not re.search("Seq Scan|SCAN payments_payment", found), found


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_within_a_range_the_index_is_entered_where_the_page_begins(many: Access, order: str) -> None:
    query = {"createdAt[gte]": "2025-12-31", "createdAt[lt]": "2026-01-02", "sort": order}

    found = plan(many, query, start="pt_0500")

    # Of two bounds in one direction an index is entered at the first; SQLite names no other.
    entered = {
        "sqlite": r"payment_list .*\(created_at,id\)[<>]",
        "postgresql": r"'live'::text\) AND \(ROW\(created_at, ",
    }
    assert len(re.findall(entered[connection.vendor], found)) == 3, found
