"""Keyset pagination, compared with a plain Python list."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.listing import Listing
from payments.models import Access, Payment
from payments.ordering import NEWEST_FIRST
from payments.page import UnknownStart, fetch_page
from tests.support.factories import OrganizationFactory
from tests.support.lists import PageIds, build_payment, page_ids, walk_both_ways
from tests.support.scale import examples
from tests.support.sql import execute, explain

pytestmark = pytest.mark.django_db

# A payment is its time, in milliseconds after noon, and the rest of its ID after pt_.
NewPayment = tuple[int, str]

# Few times and many IDs: most payments share their time. Only the collation "C" sorts this alphabet byte by byte.
milliseconds = st.integers(0, 4)
names = st.text("09AZaz", min_size=1, max_size=4)
lists = st.lists(st.tuples(milliseconds, names), max_size=30, unique_by=lambda payment: payment[1])
limits = st.integers(1, 12)


def reference_page(payments: list[NewPayment], *, start: str | None, limit: int) -> PageIds:
    """Sort and slice a list."""
    ordered = sorted(payments, key=lambda payment: (payment[0], payment[1].encode()), reverse=True)
    ids = [f"pt_{name}" for _, name in ordered]
    first = 0 if start is None else ids.index(start)
    return PageIds(
        ids[first : first + limit],
        previous_from=ids[max(0, first - limit)] if first > 0 else None,
        next_from=ids[first + limit] if first + limit < len(ids) else None,
    )


@contextmanager
def stored(payments: list[NewPayment]) -> Iterator[Listing]:
    """Store payments, and the same payments in the other mode, until the block ends. Give the listing of the former."""
    with transaction.atomic():
        organization = OrganizationFactory.create(id=1)
        visible = [build_payment(organization, "live", created, name) for created, name in payments]
        other_mode = [build_payment(organization, "test", created, f"{name}other") for created, name in payments]
        Payment.objects.bulk_create([*visible, *other_mode])
        yield Listing(Access(organization.pk, "live"))
        transaction.set_rollback(True)


@given(lists, limits, st.data())
@settings(max_examples=examples(150, long=3_000))
def test_page_equals_the_reference_for_any_start(payments: list[NewPayment], limit: int, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from([None, *(f"pt_{name}" for _, name in payments)]))

    with stored(payments) as listing:
        page = fetch_page(listing, start=start, limit=limit)

    assert page_ids(page) == reference_page(payments, start=start, limit=limit)


@given(lists, limits)
@settings(max_examples=examples(50, long=500))
def test_walk_returns_each_payment_once_and_the_same_pages_on_the_way_back(
    payments: list[NewPayment], limit: int
) -> None:
    with stored(payments) as listing:
        forward, backward = walk_both_ways(listing, limit=limit)

    walked = [payment_id for page in forward for payment_id in page_ids(page).ids]
    assert len(walked) == len(set(walked)) == len(payments)
    assert [page_ids(page).ids for page in reversed(backward)] == [page_ids(page).ids for page in forward]


@given(lists.filter(bool), limits, st.data())
@settings(max_examples=examples(50, long=500))
def test_previous_from_any_start_leads_to_the_newest_without_gaps(
    payments: list[NewPayment], limit: int, data: st.DataObject
) -> None:
    start = data.draw(st.sampled_from([f"pt_{name}" for _, name in payments]))

    with stored(payments) as listing:
        pages = [fetch_page(listing, start=start, limit=limit)]
        while previous := pages[-1].previous_from:
            pages.append(fetch_page(listing, start=previous, limit=limit))
        ordered = [payment.id for payment in Payment.objects.visible_to(listing.access).order_by(*NEWEST_FIRST)]

    walked = {payment_id for page in pages for payment_id in page_ids(page).ids}
    assert page_ids(pages[-1]).ids[0] == ordered[0]
    assert walked.issuperset(ordered[: ordered.index(start)])


@given(lists, limits)
@settings(max_examples=examples(25, long=250))
def test_start_that_is_not_in_the_list_is_an_error(payments: list[NewPayment], limit: int) -> None:
    with stored(payments) as listing:
        for start in ["pt_none", *(f"pt_{name}other" for _, name in payments)]:
            with pytest.raises(UnknownStart):
                fetch_page(listing, start=start, limit=limit)


@pytest.mark.parametrize("start", [None, "pt_1"])
def test_page_is_one_statement(start: str | None) -> None:
    with (
        stored([(number, str(number)) for number in range(5)]) as listing,
        CaptureQueriesContext(connection) as statements,
    ):
        fetch_page(listing, start=start, limit=2)

    assert len(statements) == 1


@pytest.mark.parametrize("start", [None, "pt_999"])
def test_page_uses_the_list_index_without_scan_or_sort(start: str | None) -> None:
    with stored([(number, f"{number:03}") for number in range(1000)]) as listing:
        execute("ANALYZE")
        with CaptureQueriesContext(connection) as statements:
            fetch_page(listing, start=start, limit=20)
        plan = explain(statements[-1]["sql"])

    search = "payment_list (organization_id=? AND mode=?" if connection.vendor == "sqlite" else "using payment_list"
    row_values = "(created_at,id)" if connection.vendor == "sqlite" else "ROW(created_at, "
    assert search in plan
    assert plan.count(row_values) == (3 if start else 0), plan
    scans_or_sorts = ("Seq Scan on payments_payment", "SCAN payments_payment", "Sort", "TEMP B-TREE")
    assert not {words for words in scans_or_sorts if words in plan}, plan


def test_payments_with_one_time_are_ordered_by_the_bytes_of_their_ids() -> None:
    with stored([(0, name) for name in ("a", "B", "b", "A", "0", "Z", "z", "9")]) as listing:
        page = fetch_page(listing, start=None, limit=20)

    assert page_ids(page).ids == [f"pt_{name}" for name in "zbaZBA90"]
