"""Query plans: a page with filters is searched in the right index.

The payments stay in the database for the whole module. Add no tests here that store payments.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from payments.models import Access, Mode, Organization, Payment, Status
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.lists import noon_plus, plan_of, read_page
from tests.support.sql import rolled_back, update_statistics

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def access(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Access]:
    """Store 2,000 payments, few of them open, pending or failed, and update the statistics of the database."""
    with rolled_back(django_db_blocker):
        organization = OrganizationFactory.create(id=1)
        Payment.objects.bulk_create(build_payment(number, organization) for number in range(2000))
        update_statistics()
        yield Access(organization.pk, Mode.LIVE)


def build_payment(number: int, organization: Organization) -> Payment:
    rare = {17: Status.OPEN, 18: Status.PENDING, 19: Status.FAILED}
    return PaymentFactory.build(
        id=f"pt_{number:04}",
        organization=organization,
        created_at=noon_plus(number),
        status=rare.get(number % 100, Status.SUCCEEDED),
        method="rare" if number == 77 else "creditcard",
        customer_id=f"ct_{number // 10}" if number % 2 else "",
        metadata=f'{{"number":"{number}","shop":"web"}}',
    )


@pytest.mark.parametrize("start", [None, "pt_0500"])
@pytest.mark.parametrize(
    ("parameters", "index"),
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
        ({"metadata[number]": "7"}, "payment_terms"),
        ({"metadata[number]": "7", "metadata[shop]": "web"}, "payment_terms"),
        ({"metadata[shop]": "web"}, "payment_list"),
        ({"method": "rare"}, "payment_terms"),
        ({"method": "creditcard"}, "payment_list"),
        ({"currency": "CHF"}, "payment_terms"),
        ({"sequenceType": "first,recurring"}, "payment_terms"),
    ],
)
def test_filter_uses_its_index(access: Access, parameters: dict[str, Any], index: str, start: str | None) -> None:
    if index == "payment_terms" and connection.vendor == "sqlite":
        index = "payment_list"  # SQLite has no such index, so it reads the list

    plan = plan_of(partial(read_page, access, parameters | {"from": start}))

    assert index in plan, plan
    assert not re.search("(Seq Scan on|SCAN) payments_payment", plan), plan


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_index_search_begins_at_the_start_within_a_range(access: Access, order: str) -> None:
    parameters = {"createdAt[gte]": "2025-12-31", "createdAt[lt]": "2026-01-02", "sort": order}

    plan = plan_of(partial(read_page, access, parameters | {"from": "pt_0500"}))

    # An index search begins at the first of two bounds in one direction. The plan of SQLite names only that one.
    search = {
        "sqlite": r"payment_list .*\(created_at,id\)[<>]",
        "postgresql": r"'live'::text\) AND \(ROW\(created_at, ",
    }
    assert len(re.findall(search[connection.vendor], plan)) == 2, plan
