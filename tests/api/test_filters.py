"""Filters and both orders, held to a plain Python list."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from moneyed import Money

from payments.listing import Listing
from payments.models import Access, Mode, Organization, Payment, Status
from payments.ordering import NEWEST_FIRST
from payments.page import LIMIT_MAX, Page, UnknownStart, fetch_page
from payments.record import record_time
from tests.support.api import Api, ids
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.lists import listing, moment, there_and_back
from tests.support.scale import examples

pytestmark = pytest.mark.django_db

# Few values of each kind, so that most of what is asked for is there, and most payments are tied.
STATUSES = [Status.OPEN, Status.PENDING, Status.SUCCEEDED, Status.FAILED]
METHODS = ["", "ideal", "card_2"]
CUSTOMERS = ["", "ct_1", "ct_2"]
SEQUENCE_TYPES = ["oneoff", "recurring"]
CURRENCIES = ["EUR", "JPY"]
CENTS = [-100, 0, 999, 1000, 1001]
TEXTS = ["a", "b", 'é"\\', "%s", "'", "?"]
INSTANTS = range(4)


@dataclass(frozen=True)
class Described:
    """A payment, as the reference knows it."""

    name: str
    instant: int
    status: str
    method: str
    customer: str
    sequence_type: str
    currency: str
    cents: int
    paid: int | None
    metadata: dict[str, str] = field(hash=False)

    @property
    def id(self) -> str:
        return f"pt_{self.name}"

    @property
    def place(self) -> tuple[int, bytes]:
        return self.instant, self.id.encode()


described = st.builds(
    Described,
    name=st.text("09AZaz", min_size=1, max_size=4),
    instant=st.sampled_from(INSTANTS),
    status=st.sampled_from(STATUSES),
    method=st.sampled_from(METHODS),
    customer=st.sampled_from(CUSTOMERS),
    sequence_type=st.sampled_from(SEQUENCE_TYPES),
    currency=st.sampled_from(CURRENCIES),
    cents=st.sampled_from(CENTS),
    paid=st.sampled_from(INSTANTS),
    metadata=st.dictionaries(st.sampled_from(TEXTS), st.sampled_from(TEXTS), max_size=3),
)
lists = st.lists(described, max_size=25, unique_by=lambda payment: payment.name)
limits = st.integers(1, 8)

Matches = Callable[[Described], bool]


COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "gte": lambda value, bound: value >= bound,
    "gt": lambda value, bound: value > bound,
    "lte": lambda value, bound: value <= bound,
    "lt": lambda value, bound: value < bound,
}
ATTRIBUTES = {
    "status": "status",
    "method": "method",
    "customerId": "customer",
    "sequenceType": "sequence_type",
    "currency": "currency",
}
WORDS: dict[str, list[str]] = {
    "status": [*STATUSES, Status.EXPIRED],
    "method": ["ideal", "card_2", "none"],
    "customerId": ["ct_1", "ct_2", "ct_none"],
    "sequenceType": [*SEQUENCE_TYPES, "first"],
    "currency": [*CURRENCIES, "USD"],
}


def bounds(values: Sequence[int]) -> st.SearchStrategy[dict[str, int]]:
    """Return no bound, a lower bound, an upper bound, or both. The upper bound is above the lower bound."""
    lower = [(name, value) for name in ("gte", "gt") for value in values]
    upper = [(name, value) for name in ("lte", "lt") for value in values]
    single = [(bound,) for bound in (*lower, *upper)]
    pairs = [(low, high) for low in lower for high in upper if low[1] < high[1]]
    return st.just({}) | st.sampled_from(single).map(dict) | st.sampled_from(pairs).map(dict)


# Strategies are made once, because making one takes longer than drawing from it.
SOME_WORDS = {
    name: st.none() | st.lists(st.sampled_from(words), min_size=1, max_size=3) for name, words in WORDS.items()
}
INSTANT_BOUNDS, CENT_BOUNDS = bounds(INSTANTS), bounds(CENTS)
PAIRS = st.dictionaries(st.sampled_from(TEXTS), st.sampled_from(TEXTS), max_size=2)
ORDERS = st.sampled_from(["", "asc", "desc"])


@st.composite
def asked(draw: st.DrawFn) -> tuple[dict[str, str], Matches]:
    """Return parameters, and what they ask of a payment."""
    query: dict[str, str] = {}
    conditions: list[Matches] = []

    def ask(name: str, text: str, condition: Matches) -> None:
        query[name] = text
        conditions.append(condition)

    for name, attribute in ATTRIBUTES.items():
        if words := draw(SOME_WORDS[name]):
            ask(name, ",".join(words), one_of(attribute, words))
    for name, attribute in {"createdAt": "instant", "paidAt": "paid"}.items():
        for bound, instant in draw(INSTANT_BOUNDS).items():
            at = moment(instant)
            ask(
                f"{name}[{bound}]",
                record_time(at) if draw(st.booleans()) else at.isoformat(),
                within(attribute, bound, instant),
            )
    if "currency" in query:
        for bound, cents in draw(CENT_BOUNDS).items():
            ask(f"amount[{bound}]", str(Decimal(cents) / 100), within("cents", bound, cents))
    for key, text in draw(PAIRS).items():
        ask(f"metadata[{key}]", text, holding(key, text))
    if order := draw(ORDERS):
        query["sort"] = order
    return query, lambda payment: all(condition(payment) for condition in conditions)


def one_of(attribute: str, values: list[str]) -> Matches:
    return lambda payment: getattr(payment, attribute) in values


def holding(key: str, text: str) -> Matches:
    return lambda payment: payment.metadata.get(key) == text


def within(attribute: str, bound: str, limit: int) -> Matches:
    def is_within(payment: Described) -> bool:
        value = getattr(payment, attribute)
        return value is not None and COMPARED[bound](value, limit)

    return is_within


def reference_page(
    payments: list[Described], matches: Matches, *, is_ascending: bool, start: str | None, limit: int
) -> tuple[list[str], str | None, str | None]:
    """Sort, filter, cut: the ids of a page, and what the previous and the next begin with."""
    ordered = sorted(payments, key=lambda payment: payment.place, reverse=not is_ascending)
    first = 0 if start is None else [payment.id for payment in ordered].index(start)
    before, behind = ([each.id for each in part if matches(each)] for part in (ordered[:first], ordered[first:]))
    previous_from = before[max(0, len(before) - limit)] if before else None
    return behind[:limit], previous_from, behind[limit] if len(behind) > limit else None


@contextmanager
def kept(payments: list[Described]) -> Iterator[Access]:
    """Store payments, and the same again as somebody else's, and forget them afterwards."""
    with transaction.atomic():
        organization = OrganizationFactory.create(id=1)
        for mode, suffix in ((Mode.LIVE, ""), (Mode.TEST, "other")):
            Payment.objects.bulk_create(built(each, organization, mode, f"{each.id}{suffix}") for each in payments)
        yield Access(organization.pk, Mode.LIVE)
        transaction.set_rollback(True)


def built(payment: Described, organization: Organization, mode: str, payment_id: str) -> Payment:
    return PaymentFactory.build(
        id=payment_id,
        organization=organization,
        mode=mode,
        created_at=moment(payment.instant),
        status=payment.status,
        method=payment.method,
        customer_id=payment.customer,
        sequence_type=payment.sequence_type,
        amount=Money(Decimal(payment.cents) / 100, payment.currency),
        paid_at=None if payment.paid is None else moment(payment.paid),
        metadata=json.dumps(payment.metadata),
        details=None,
    )


def shown(page: Page) -> tuple[list[str], str | None, str | None]:
    return [row[0] for row in page.rows], page.previous_from, page.next_from


FetchPage = Callable[..., Page]


def assert_page_is_right(
    fetch: FetchPage, payments: list[Described], asking: tuple[dict[str, str], Matches], limit: int, start: str | None
) -> None:
    query, matches = asking
    with kept(payments) as place:
        page = fetch(listing(place, query), start=start, limit=limit)

    is_ascending = query.get("sort") == "asc"
    assert shown(page) == reference_page(payments, matches, is_ascending=is_ascending, start=start, limit=limit)


def starts(payments: list[Described]) -> st.SearchStrategy[str | None]:
    return st.sampled_from([None, *(payment.id for payment in payments)])


@given(lists, asked(), limits, st.data())
@settings(max_examples=examples(120, long=3_000))
def test_a_page_equals_the_reference_whatever_is_asked_for(
    payments: list[Described], asking: tuple[dict[str, str], Matches], limit: int, data: st.DataObject
) -> None:
    assert_page_is_right(fetch_page, payments, asking, limit, data.draw(starts(payments)))


@given(lists, asked(), limits)
@settings(max_examples=examples(60, long=1_000))
def test_walking_there_and_back_gives_all_that_matches_once_and_the_same_pages(
    payments: list[Described], asking: tuple[dict[str, str], Matches], limit: int
) -> None:
    query, matches = asking
    with kept(payments) as place:
        there, back = there_and_back(listing(place, query), limit=limit)

    walked = [payment_id for page in there for payment_id in shown(page)[0]]
    ordered = sorted(payments, key=lambda payment: payment.place, reverse=query.get("sort") != "asc")
    assert walked == [payment.id for payment in ordered if matches(payment)]
    assert [shown(page)[0] for page in reversed(back)] == [shown(page)[0] for page in there]


@given(lists.filter(bool), asked(), limits)
@settings(max_examples=examples(30, long=500))
def test_a_start_that_the_key_does_not_see_is_an_error_whatever_is_asked_for(
    payments: list[Described], asking: tuple[dict[str, str], Matches], limit: int
) -> None:
    with kept(payments) as place:
        for start in ("pt_none", f"{payments[0].id}other"):
            with pytest.raises(UnknownStart):
                fetch_page(listing(place, asking[0]), start=start, limit=limit)


@given(lists, asked())
@settings(max_examples=examples(60, long=1_000))
def test_the_orm_gives_the_same_for_the_values_themselves(
    payments: list[Described], asking: tuple[dict[str, str], Matches]
) -> None:
    with kept(payments) as place:
        wanted = listing(place, asking[0])
        by_orm = Payment.objects.visible_to(place)
        for given_filter in wanted.selection.filters:
            by_orm = given_filter.filter.select(by_orm, given_filter.values)
        expected = [payment.id for payment in by_orm.order_by(*wanted.selection.order)]

        assert shown(fetch_page(wanted, start=None, limit=25))[0] == expected


# What a wrong pager would do: each in turn stands where the right one does, and the reference finds it out.


def start_among_matches(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Look for the start where the filters are: a payment whose status changed ends the walk."""
    matching = [row[0] for row in fetch_page(listing, start=None, limit=LIMIT_MAX).rows]
    if start not in {None, *matching}:
        raise UnknownStart(start)
    return fetch_page(listing, start=start, limit=limit)


def previous_among_all(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Count back through all payments, whether they match or not."""
    everything = with_selection(listing, filters=())
    previous_from = fetch_page(everything, start=start, limit=limit).previous_from
    return fetch_page(listing, start=start, limit=limit)._replace(previous_from=previous_from)


def filtered_afterwards(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Take a page of all payments, and leave out what does not match."""
    matching = [row[0] for row in fetch_page(listing, start=None, limit=LIMIT_MAX).rows]
    page = fetch_page(with_selection(listing, filters=()), start=start, limit=limit)
    return page._replace(rows=[row for row in page.rows if row[0] in matching])


def newest_first_always(listing: Listing, *, start: str | None, limit: int) -> Page:
    return fetch_page(with_selection(listing, order=NEWEST_FIRST), start=start, limit=limit)


def with_one_filter_less(listing: Listing, *, start: str | None, limit: int) -> Page:
    return fetch_page(with_selection(listing, filters=listing.selection.filters[1:]), start=start, limit=limit)


def with_selection(listing: Listing, **changes: Any) -> Listing:
    return listing._replace(selection=listing.selection._replace(**changes))


@pytest.mark.parametrize(
    "wrong_page",
    [start_among_matches, previous_among_all, filtered_afterwards, newest_first_always, with_one_filter_less],
)
def test_a_wrong_pager_is_found_out(wrong_page: FetchPage) -> None:
    @given(lists, asked(), limits, st.data())
    @settings(max_examples=300, phases=[Phase.generate], database=None)
    def run(payments: list[Described], asking: tuple[dict[str, str], Matches], limit: int, data: st.DataObject) -> None:
        assert_page_is_right(wrong_page, payments, asking, limit, data.draw(starts(payments)))

    with pytest.raises((AssertionError, UnknownStart)):
        run()


# What a client sees.


@pytest.fixture
def shop(organization: Organization) -> Organization:
    """Give ten payments, one a day from NOON on, the second of each pair open."""
    for number in range(10):
        PaymentFactory.create(
            id=f"pt_{number}",
            organization=organization,
            created_at=NOON + timedelta(days=number),
            status=Status.OPEN if number % 2 else Status.SUCCEEDED,
            metadata='{"é &=":"+ %"}',
        )
    return organization


ASKED = {
    "metadata[é &=]": "+ %",
    "createdAt[lt]": "2027-01-01T00:00:00+02:00",
    "createdAt[gte]": "2026-01-02",
    "status": "open,pending",
    "sort": "asc",
    "limit": "2",
}
IN_LINKS = (
    "sort=asc&status=open%2Cpending&createdAt%5Bgte%5D=2026-01-02&createdAt%5Blt%5D=2027-01-01T00%3A00%3A00%2B02%3A00"
    "&metadata%5B%C3%A9%20%26%3D%5D=%2B%20%25"
)


def test_links_carry_all_that_was_asked_for_in_one_order(api: Api, shop: Organization) -> None:
    page = api.get(**ASKED).json()

    for _ in range(2):
        assert [link["href"].partition("?")[2] for name, link in page["_links"].items() if name != "documentation"] == [
            f"limit=2&from={start}&{IN_LINKS}" for start in ("pt_1", "pt_5")
        ]
        page = api.get(**dict(reversed(ASKED.items()))).json()


def test_whoever_follows_links_gets_all_that_matches_and_comes_back(api: Api, shop: Organization) -> None:
    there = api.walk("next", api.get(**ASKED).json())
    back = api.walk("previous", there[-1])

    assert [ids(page) for page in there] == [["pt_1", "pt_3"], ["pt_5", "pt_7"], ["pt_9"]]
    assert [page["_embedded"] for page in reversed(back)] == [page["_embedded"] for page in there]
    assert api.follow(there[1]["_links"]["self"]["href"]).json() == there[1]


def test_a_payment_that_no_longer_matches_is_still_a_place_in_the_list(api: Api, shop: Organization) -> None:
    first = api.get(status="open", limit=2).json()
    Payment.objects.filter(id="pt_5").update(status=Status.FAILED)

    second = api.follow(first["_links"]["next"]["href"]).json()

    assert first["_links"]["next"]["href"].endswith("limit=2&from=pt_5&status=open")
    assert ids(second) == ["pt_3", "pt_1"]
    assert second["_links"]["previous"]["href"].endswith("limit=2&from=pt_9&status=open")


def test_a_page_behind_the_last_match_says_where_it_is_and_leads_back(api: Api, shop: Organization) -> None:
    page = api.get(status="open", limit=2, from_="pt_0").json()

    links = {name: link["href"].partition("?")[2] for name, link in page["_links"].items()}
    assert page["count"] == 0
    assert links["self"] == "limit=2&from=pt_0&status=open"
    assert links["previous"] == "limit=2&from=pt_3&status=open"
    assert "next" not in links


@pytest.mark.parametrize("from_", [{}, {"from_": "pt_9"}, {"from_": "pt_0"}, {"from_": "pt_unknown"}])
@pytest.mark.parametrize("asked", [{}, {"status": "open"}, {"status": "failed"}, {"metadata[a]": "b"}, ASKED])
def test_a_page_costs_two_queries_whatever_is_asked_for(
    api: Api, shop: Organization, asked: dict[str, str], from_: dict[str, str]
) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get(**asked, **from_)

    assert len(queries) == 2


def test_the_old_and_the_new_way_round_are_the_same_list(api: Api, shop: Organization) -> None:
    newest_first = api.walk("next", api.get(limit=3).json())
    oldest_first = api.walk("next", api.get(limit=3, sort="asc").json())

    assert ids(*oldest_first) == list(reversed(ids(*newest_first)))
