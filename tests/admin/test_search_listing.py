"""The payment list with a search: its pages, and the index by which they are found.

The payments stay in the database for the whole module. Add no tests here that store payments.
"""

from collections.abc import Iterator
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker

from payments.admin.payments.search import SAMPLE_PAYMENTS, faster_search, fetch_search, take_sample
from payments.models import Access, Mode, Organization, Payment, Status
from tests.support.factories import OrganizationFactory, PaymentFactory
from tests.support.list_errors import failing_statements, timeout_error
from tests.support.lists import (
    SearchableList,
    list_page,
    noon_plus,
    plan_of,
    read_list,
    searchable_list,
    walk_both_ways,
)
from tests.support.sql import rolled_back, update_statistics

pytestmark = pytest.mark.django_db

PAYMENTS = SAMPLE_PAYMENTS + 1000


@pytest.fixture(scope="module")
def access(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Access]:
    """Store a list whose oldest payments have a word of their own, and a list that has this word in each payment."""
    with rolled_back(django_db_blocker):
        own, foreign = OrganizationFactory.create(id=1), OrganizationFactory.create(id=2)
        Payment.objects.bulk_create(build_payment(number, own) for number in range(PAYMENTS))
        Payment.objects.bulk_create(build_payment(number, foreign) for number in range(500))
        update_statistics()
        yield Access(own.pk, Mode.LIVE)


def build_payment(number: int, organization: Organization) -> Payment:
    return PaymentFactory.build(
        id=f"pt_{organization.pk}{number:04}",
        organization=organization,
        created_at=noon_plus(number // 3),
        description=f"Order {number}{' retired' if number < 500 else ''}",
        status=Status.FAILED if number % 10 == 0 else Status.SUCCEEDED,
        metadata="{}",
    )


def search(listing: SearchableList, *groups: str, start: str | None = None, limit: int = 50) -> SearchableList:
    """Return the list with a search that has many results."""
    return faster_search(listing, groups, take_sample(listing, groups, start=start), limit=limit)


def expected_ids(access: Access, *, numbers: range, status: str = "") -> list[str]:
    """Return the IDs of these payments in the order of the list."""
    payments = Payment.objects.visible_to(access).filter(id__in=[f"pt_1{number:04}" for number in numbers])
    if status:
        payments = payments.filter(status=status)
    return list(payments.order_by("-created_at", "-id").values_list("id", flat=True))


@pytest.mark.parametrize(
    ("groups", "query", "numbers"),
    [
        ([":order"], {}, range(PAYMENTS)),
        ([":order"], {"status": "failed"}, range(PAYMENTS)),
        ([":order"], {"sort": "asc"}, range(PAYMENTS)),
        ([":retired"], {}, range(500)),
        ([":retired", ":order"], {"status": "failed"}, range(500)),
        ([":retired"], {"sort": "asc", "method": "creditcard"}, range(500)),
        ([":77 =77.00"], {}, range(77, 78)),
        ([":missing"], {}, range(0)),
    ],
)
def test_pages_of_a_search_have_each_result_once(
    access: Access, groups: list[str], query: dict[str, str], numbers: range
) -> None:
    listing = search(searchable_list(access, query), *groups)
    expected = expected_ids(access, numbers=numbers, status=query.get("status", ""))

    forward, backward = walk_both_ways(lambda start: read_list(listing, start=start, limit=250))

    order = -1 if query.get("sort") == "asc" else 1
    assert [payment_id for page in forward for payment_id in page.ids] == expected[::order]
    assert len(backward) == len(forward)


def plan_of_page(listing: SearchableList, *, start: str | None) -> str:
    return plan_of(partial(read_list, listing, start=start, limit=50))


@pytest.mark.only("postgresql", "citus")
@pytest.mark.parametrize("start", [None, "pt_12800"])
@pytest.mark.parametrize(
    ("groups", "query", "index"),
    [
        ([":order"], {}, "payment_list"),
        ([":order"], {"status": "failed"}, "payment_status"),
        ([":retired"], {}, "payment_search"),
        ([":77 =77.00"], {}, "payment_search"),
        ([":missing"], {}, "payment_search"),
        ([":order", ":missing"], {"method": "creditcard"}, "payment_search"),
    ],
)
def test_page_of_a_search_is_found_by_the_right_index(
    access: Access, groups: list[str], query: dict[str, str], index: str, start: str | None
) -> None:
    plan = plan_of_page(search(searchable_list(access, query), *groups, start=start), start=start)

    assert index in plan, plan


@pytest.mark.only("postgresql", "citus")
def test_short_period_is_read_along_the_list(access: Access) -> None:
    listing = searchable_list(access, {"createdAt[lt]": noon_plus(100).isoformat()[:-6]})

    sample = take_sample(listing, [":retired"], start=None)

    assert sample.is_all
    assert "payment_list" in plan_of_page(search(listing, ":retired"), start=None)


@pytest.mark.only("postgresql", "citus")
def test_list_is_read_from_the_position_on_from_which_most_payments_match(access: Access) -> None:
    newest = plan_of_page(search(searchable_list(access), ":retired"), start=None)
    oldest = plan_of_page(search(searchable_list(access), ":retired", start="pt_10400"), start="pt_10400")

    assert ("payment_list" in newest, "payment_list" in oldest) == (False, True), newest


@pytest.mark.only("postgresql", "citus")
def test_export_uses_the_index_unless_most_payments_match(access: Access) -> None:
    page = search(searchable_list(access), ":retired", start="pt_12000", limit=50)
    part = search(searchable_list(access), ":retired", start="pt_12000", limit=5000)
    every = search(searchable_list(access), ":order", start="pt_12000", limit=5000)

    plans = [plan_of_page(listing, start="pt_12000") for listing in (page, part, every)]
    assert ["payment_list" in plan for plan in plans] == [True, False, True], plans


@pytest.mark.parametrize("group", [":retired", ":missing", ":77"])
def test_words_of_another_organization_do_not_change_the_plan(access: Access, group: str) -> None:
    other = Access(OrganizationFactory.create(id=3).pk, Mode.LIVE)

    plans = [plan_of_page(search(searchable_list(other), word), start=None) for word in (group, ":nowhere")]
    assert plans[0].replace(group, ":nowhere") == plans[1]


def test_search_is_first_tried_by_one_statement(access: Access) -> None:
    with CaptureQueriesContext(connection) as statements:
        searched = fetch_search(searchable_list(access), [":order"], start=None, limit=50)

    assert not searched.has_many_results
    assert list_page(searched.page).ids == expected_ids(access, numbers=range(PAYMENTS))[:50]
    assert len([query for query in statements if "payments_payment" in query["sql"]]) == 1


@pytest.mark.only("postgresql", "citus")
@pytest.mark.parametrize("word", [":order", ":retired"])
def test_search_that_takes_too_long_by_the_index_is_repeated(access: Access, word: str) -> None:
    with failing_statements("UNION ALL", timeout_error(), times=1):
        searched = fetch_search(searchable_list(access), [word], start=None, limit=50)

    numbers = range(PAYMENTS) if word == ":order" else range(500)
    assert searched.has_many_results
    assert list_page(searched.page).ids == expected_ids(access, numbers=numbers)[:50]
