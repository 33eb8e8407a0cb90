"""The keyset is held to a plain Python list."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.listing import Listing
from payments.models import Access, Payment, PaymentQuerySet
from payments.ordering import NEWEST_FIRST
from payments.page import Page, UnknownStart, fetch_page
from tests.support.factories import OrganizationFactory
from tests.support.lists import placed, there_and_back
from tests.support.scale import examples

pytestmark = pytest.mark.django_db

# Few instants and many ids: most payments are tied. The alphabet's three cases sort differently outside of "C".
instants = st.integers(0, 4)
names = st.text("09AZaz", min_size=1, max_size=4)
listings = st.lists(st.tuples(instants, names), max_size=30, unique_by=lambda place: place[1])
limits = st.integers(1, 12)


@dataclass(frozen=True)
class Expected:
    """A page as the reference has it: ids alone."""

    ids: list[str]
    previous_from: str | None
    next_from: str | None


def reference_page(places: list[tuple[int, str]], *, start: str | None, limit: int) -> Expected:
    """Sort, find, slice: what a keyset must equal."""
    ordered = [
        f"pt_{name}" for _, name in sorted(places, key=lambda place: (place[0], place[1].encode()), reverse=True)
    ]
    first = 0 if start is None else ordered.index(start)
    return Expected(
        ids=ordered[first : first + limit],
        previous_from=ordered[max(0, first - limit)] if first > 0 else None,
        next_from=ordered[first + limit] if first + limit < len(ordered) else None,
    )


@contextmanager
def stored(places: list[tuple[int, str]]) -> Iterator[Listing]:
    """Store payments at these places, among others' of the same ids' kind, and forget them afterwards."""
    with transaction.atomic():
        organization = OrganizationFactory.create(id=1)
        payments = [placed(organization, "live", instant, name) for instant, name in places]
        others = [placed(organization, "test", instant, f"{name}other") for instant, name in places]
        Payment.objects.bulk_create([*payments, *others])
        yield Listing(Access(organization.pk, "live"))
        transaction.set_rollback(True)


def queryset(listing: Listing) -> PaymentQuerySet:
    return Payment.objects.visible_to(listing.access)


def ids(page: Page) -> list[str]:
    return [row[0] for row in page.rows]


def as_expected(page: Page) -> Expected:
    return Expected(ids(page), page.previous_from, page.next_from)


@given(listings, limits, st.data())
@settings(max_examples=examples(150, long=3_000))
def test_a_page_equals_the_reference_from_any_start(
    places: list[tuple[int, str]], limit: int, data: st.DataObject
) -> None:
    start = data.draw(st.sampled_from([None, *(f"pt_{name}" for _, name in places)]))

    with stored(places) as listing:
        page = fetch_page(listing, start=start, limit=limit)

    assert as_expected(page) == reference_page(places, start=start, limit=limit)


@given(listings, limits)
@settings(max_examples=examples(50, long=500))
def test_walking_there_and_back_gives_every_payment_once_and_the_same_pages(
    places: list[tuple[int, str]], limit: int
) -> None:
    with stored(places) as listing:
        there, back = there_and_back(listing, limit=limit)

    walked = [payment_id for page in there for payment_id in ids(page)]
    assert len(walked) == len(set(walked)) == len(places)
    assert [ids(page) for page in reversed(back)] == [ids(page) for page in there]


@given(listings.filter(bool), limits, st.data())
@settings(max_examples=examples(50, long=500))
def test_previous_from_any_start_ends_at_the_newest_and_misses_none(
    places: list[tuple[int, str]], limit: int, data: st.DataObject
) -> None:
    start = data.draw(st.sampled_from([f"pt_{name}" for _, name in places]))

    with stored(places) as listing:
        pages = [fetch_page(listing, start=start, limit=limit)]
        while previous := pages[-1].previous_from:
            pages.append(fetch_page(listing, start=previous, limit=limit))
        preceding = [row.id for row in queryset(listing).order_by(*NEWEST_FIRST)]

    seen = {payment_id for page in pages for payment_id in ids(page)}
    assert ids(pages[-1])[0] == preceding[0]
    assert seen.issuperset(preceding[: preceding.index(start)])


@given(listings, limits)
@settings(max_examples=examples(25, long=250))
def test_a_start_that_is_not_in_the_listing_is_an_error(places: list[tuple[int, str]], limit: int) -> None:
    with stored(places) as listing:
        for start in ["pt_none", *(f"pt_{name}other" for _, name in places)]:
            with pytest.raises(UnknownStart):
                fetch_page(listing, start=start, limit=limit)


@pytest.mark.parametrize("start", [None, "pt_1"])
def test_a_page_is_one_statement(start: str | None) -> None:
    with (
        stored([(instant, str(instant)) for instant in range(5)]) as listing,
        CaptureQueriesContext(connection) as queries,
    ):
        fetch_page(listing, start=start, limit=2)

    assert len(queries) == 1


@pytest.mark.parametrize("start", [None, "pt_999"])
def test_a_page_is_searched_in_the_lists_index_without_a_scan_or_a_sort(start: str | None) -> None:
    with stored([(number, f"{number:03}") for number in range(1000)]) as listing:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        with CaptureQueriesContext(connection) as queries:
            fetch_page(listing, start=start, limit=20)
        explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
        with connection.cursor() as cursor:
            cursor.execute(explain + queries[-1]["sql"])
            plan = "\n".join(str(line) for line in cursor.fetchall())

    searched = "payment_list (organization_id=? AND mode=?" if connection.vendor == "sqlite" else "using payment_list"
    row_values = "(created_at,id)" if connection.vendor == "sqlite" else "ROW(created_at, "
    assert searched in plan
    assert plan.count(row_values) == (3 if start else 0), plan
    assert not {word for word in ("Seq Scan", "SCAN", "Sort", "TEMP B-TREE") if word in plan}, plan


def test_within_an_instant_ids_are_ordered_byte_by_byte() -> None:
    with stored([(0, name) for name in ("a", "B", "b", "A", "0", "Z", "z", "9")]) as listing:
        page = fetch_page(listing, start=None, limit=20)

    assert ids(page) == [f"pt_{name}" for name in "zbaZBA90"]
