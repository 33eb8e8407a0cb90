"""Keyset pagination, compared with a plain Python list."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.models import Access, Payment
from tests.support.factories import OrganizationFactory
from tests.support.lists import ListPage, build_payment, plan_of, read_page, walk_both_ways
from tests.support.scale import examples
from tests.support.sql import execute

pytestmark = pytest.mark.django_db

# A payment is its time, in milliseconds after noon, and the rest of its ID after pt_.
NewPayment = tuple[int, str]

# Few times and many IDs: most payments share their time. Only the collation "C" sorts this alphabet byte by byte.
milliseconds = st.integers(0, 4)
names = st.text("09AZaz", min_size=1, max_size=4)
lists = st.lists(st.tuples(milliseconds, names), max_size=30, unique_by=lambda payment: payment[1])
limits = st.integers(1, 12)


def reference_page(payments: list[NewPayment], *, start: str | None, limit: int) -> ListPage:
    """Sort and slice a list."""
    ordered = sorted(payments, key=lambda payment: (payment[0], payment[1].encode()), reverse=True)
    ids = [f"pt_{name}" for _, name in ordered]
    first = 0 if start is None else ids.index(start)
    return ListPage(
        ids[first : first + limit],
        previous=ids[max(0, first - limit)] if first > 0 else None,
        next=ids[first + limit] if first + limit < len(ids) else None,
    )


@contextmanager
def stored(payments: list[NewPayment]) -> Iterator[Access]:
    """Store payments, and the same payments in the other mode, until the block ends. Give the access to the former."""
    with transaction.atomic():
        organization = OrganizationFactory.create(id=1)
        visible = [build_payment(organization, "live", created, name) for created, name in payments]
        other_mode = [build_payment(organization, "test", created, f"{name}other") for created, name in payments]
        Payment.objects.bulk_create([*visible, *other_mode])
        yield Access(organization.pk, "live")
        transaction.set_rollback(True)


@given(lists, limits, st.data())
@settings(max_examples=examples(150, long=3_000))
def test_page_equals_the_reference_for_any_start(payments: list[NewPayment], limit: int, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from([None, *(f"pt_{name}" for _, name in payments)]))

    with stored(payments) as access:
        page = read_page(access, {"from": start, "limit": limit})

    assert page == reference_page(payments, start=start, limit=limit)


@given(lists, limits)
@settings(max_examples=examples(50, long=500))
def test_walk_returns_each_payment_once_and_the_same_pages_on_the_way_back(
    payments: list[NewPayment], limit: int
) -> None:
    with stored(payments) as access:
        forward, backward = walk_both_ways(lambda start: read_page(access, {"from": start, "limit": limit}))

    walked = [payment_id for page in forward for payment_id in page.ids]
    assert len(walked) == len(set(walked)) == len(payments)
    assert [page.ids for page in reversed(backward)] == [page.ids for page in forward]


@given(lists.filter(bool), limits, st.data())
@settings(max_examples=examples(50, long=500))
def test_previous_from_any_start_leads_to_the_newest_without_gaps(
    payments: list[NewPayment], limit: int, data: st.DataObject
) -> None:
    start = data.draw(st.sampled_from([f"pt_{name}" for _, name in payments]))

    with stored(payments) as access:
        pages = [read_page(access, {"from": start, "limit": limit})]
        while previous := pages[-1].previous:
            pages.append(read_page(access, {"from": previous, "limit": limit}))
        ordered = [payment.id for payment in Payment.objects.visible_to(access).order_by("-created_at", "-id")]

    walked = {payment_id for page in pages for payment_id in page.ids}
    assert pages[-1].ids[0] == ordered[0]
    assert walked.issuperset(ordered[: ordered.index(start)])


@given(lists, limits)
@settings(max_examples=examples(25, long=250))
def test_start_that_is_not_in_the_list_is_an_error(payments: list[NewPayment], limit: int) -> None:
    with stored(payments) as access:
        for start in ["pt_none", *(f"pt_{name}other" for _, name in payments)]:
            with pytest.raises(LookupError):
                read_page(access, {"from": start, "limit": limit})


@pytest.mark.parametrize("start", [None, "pt_1"])
def test_page_is_one_statement(start: str | None) -> None:
    with (
        stored([(number, str(number)) for number in range(5)]) as access,
        CaptureQueriesContext(connection) as statements,
    ):
        read_page(access, {"from": start, "limit": 2})

    assert len(statements) == 1


@pytest.mark.parametrize("start", [None, "pt_999"])
def test_page_uses_the_list_index_without_scan_or_sort(start: str | None) -> None:
    with stored([(number, f"{number:03}") for number in range(1000)]) as access:
        execute("ANALYZE")
        plan = plan_of(lambda: read_page(access, {"from": start}))

    search = "payment_list (organization_id=? AND mode=?" if connection.vendor == "sqlite" else "using payment_list"
    row_values = "(created_at,id)" if connection.vendor == "sqlite" else "ROW(created_at, "
    assert search in plan
    assert plan.count(row_values) == (3 if start else 0), plan
    scans_or_sorts = ("Seq Scan on payments_payment", "SCAN payments_payment", "Sort", "TEMP B-TREE")
    assert not {words for words in scans_or_sorts if words in plan}, plan


def test_payments_with_one_time_are_ordered_by_the_bytes_of_their_ids() -> None:
    with stored([(0, name) for name in ("a", "B", "b", "A", "0", "Z", "z", "9")]) as access:
        page = read_page(access)

    assert page.ids == [f"pt_{name}" for name in "zbaZBA90"]
