"""Filters and both orders, compared with a plain Python list."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from payments.models import Access, Mode, Organization, Payment, Status
from payments.record import record_time
from tests.support.api import Api, payment_ids
from tests.support.factories import NOON, OrganizationFactory, PaymentFactory
from tests.support.lists import ListPage, noon_plus, read_page, searchable_list, walk_both_ways
from tests.support.scale import examples
from tests.support.sql import KEY, PAYMENT, STATE, tables_read

pytestmark = [pytest.mark.django_db, pytest.mark.also("citus")]

# Few values of each kind, so that most filters match some payments, and most payments share their time with others.
STATUSES = [Status.OPEN, Status.PENDING, Status.SUCCEEDED, Status.FAILED]
METHODS = ["", "ideal", "card_2"]
CUSTOMERS = ["", "ct_1", "ct_2"]
SEQUENCE_TYPES = ["oneoff", "recurring"]
CURRENCIES = ["EUR", "JPY"]
CENTS = [-100, 0, 999, 1000, 1001]
TEXTS = ["a", "b", 'é"\\', "%s", "'", "?"]
MILLISECONDS = range(4)


@dataclass(frozen=True)
class PlainPayment:
    """A payment in the reference implementation. Times are milliseconds after noon."""

    name: str
    created: int
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
    def position(self) -> tuple[int, bytes]:
        return self.created, self.id.encode()


plain_payments = st.builds(
    PlainPayment,
    name=st.text("09AZaz", min_size=1, max_size=4),
    created=st.sampled_from(MILLISECONDS),
    status=st.sampled_from(STATUSES),
    method=st.sampled_from(METHODS),
    customer=st.sampled_from(CUSTOMERS),
    sequence_type=st.sampled_from(SEQUENCE_TYPES),
    currency=st.sampled_from(CURRENCIES),
    cents=st.sampled_from(CENTS),
    paid=st.sampled_from(MILLISECONDS),
    metadata=st.dictionaries(st.sampled_from(TEXTS), st.sampled_from(TEXTS), max_size=3),
)
lists = st.lists(plain_payments, max_size=25, unique_by=lambda payment: payment.name)
limits = st.integers(1, 8)

Condition = Callable[[PlainPayment], bool]

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
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
    """Return no bound, a lower bound, an upper bound, or both. The upper bound is not below the lower bound."""
    lower = [(name, value) for name in ("gte", "gt") for value in values]
    upper = [(name, value) for name in ("lte", "lt") for value in values]
    single = [(bound,) for bound in (*lower, *upper)]
    pairs = [(low, high) for low in lower for high in upper if low[1] <= high[1]]
    return st.just({}) | st.sampled_from(single).map(dict) | st.sampled_from(pairs).map(dict)


# Strategies are made once, because making one takes longer than drawing from it.
SOME_WORDS = {
    name: st.none() | st.lists(st.sampled_from(words), min_size=1, max_size=3) for name, words in WORDS.items()
}
TIME_BOUNDS, CENT_BOUNDS = bounds(MILLISECONDS), bounds(CENTS)
PAIRS = st.dictionaries(st.sampled_from(TEXTS), st.sampled_from(TEXTS), max_size=2)
ORDERS = st.sampled_from(["", "asc", "desc"])


class Query(NamedTuple):
    """Parameters, and the condition that they set."""

    parameters: dict[str, str]
    matches: Condition

    @property
    def is_ascending(self) -> bool:
        return self.parameters.get("sort") == "asc"


@st.composite
def queries(draw: st.DrawFn) -> Query:
    parameters: dict[str, str] = {}
    conditions: list[Condition] = []

    def add(name: str, text: str, condition: Condition) -> None:
        parameters[name] = text
        conditions.append(condition)

    for name, attribute in ATTRIBUTES.items():
        if words := draw(SOME_WORDS[name]):
            add(name, ",".join(words), is_one_of(attribute, words))
    for name, attribute in {"createdAt": "created", "paidAt": "paid"}.items():
        for bound, milliseconds in draw(TIME_BOUNDS).items():
            time = noon_plus(milliseconds)
            text = record_time(time) if draw(st.booleans()) else time.isoformat()
            add(f"{name}[{bound}]", text, is_within(attribute, bound, milliseconds))
    if "currency" in parameters:
        for bound, cents in draw(CENT_BOUNDS).items():
            add(f"amount[{bound}]", str(Decimal(cents) / 100), is_within("cents", bound, cents))
    for key, text in draw(PAIRS).items():
        add(f"metadata[{key}]", text, has_metadata(key, text))
    if order := draw(ORDERS):
        parameters["sort"] = order
    return Query(parameters, lambda payment: all(condition(payment) for condition in conditions))


def is_one_of(attribute: str, values: list[str]) -> Condition:
    return lambda payment: getattr(payment, attribute) in values


def has_metadata(key: str, text: str) -> Condition:
    return lambda payment: payment.metadata.get(key) == text


def is_within(attribute: str, bound: str, limit: int) -> Condition:
    def condition(payment: PlainPayment) -> bool:
        value = getattr(payment, attribute)
        return value is not None and COMPARISONS[bound](value, limit)

    return condition


def reference_page(payments: list[PlainPayment], query: Query, *, start: str | None, limit: int) -> ListPage:
    """Sort, filter and slice a list."""
    ordered = sort_payments(payments, query)
    first = 0 if start is None else [payment.id for payment in ordered].index(start)
    before, after = (
        [payment.id for payment in part if query.matches(payment)] for part in (ordered[:first], ordered[first:])
    )
    return ListPage(
        after[:limit],
        previous=before[max(0, len(before) - limit)] if before else None,
        next=after[limit] if len(after) > limit else None,
    )


def sort_payments(payments: list[PlainPayment], query: Query) -> list[PlainPayment]:
    return sorted(payments, key=lambda payment: payment.position, reverse=not query.is_ascending)


@contextmanager
def stored(payments: list[PlainPayment]) -> Iterator[Access]:
    """Store payments, and the same payments in the other mode, until the block ends."""
    with transaction.atomic():
        organization = OrganizationFactory.create(id=1)
        for mode, suffix in ((Mode.LIVE, ""), (Mode.TEST, "other")):
            Payment.objects.bulk_create(
                build_payment(payment, organization, mode, f"{payment.id}{suffix}") for payment in payments
            )
        yield Access(organization.pk, Mode.LIVE)
        transaction.set_rollback(True)


def build_payment(payment: PlainPayment, organization: Organization, mode: str, payment_id: str) -> Payment:
    return PaymentFactory.build(
        id=payment_id,
        organization=organization,
        mode=mode,
        created_at=noon_plus(payment.created),
        status=payment.status,
        method=payment.method,
        customer_id=payment.customer,
        sequence_type=payment.sequence_type,
        amount=Decimal(payment.cents) / 100,
        amount_currency=payment.currency,
        paid_at=None if payment.paid is None else noon_plus(payment.paid),
        metadata=json.dumps(payment.metadata),
        details=None,
    )


def starts(payments: list[PlainPayment]) -> st.SearchStrategy[str | None]:
    return st.sampled_from([None, *(payment.id for payment in payments)])


@given(lists, queries(), limits, st.data())
@settings(max_examples=examples(120, long=3_000))
def test_page_equals_the_reference_for_any_query(
    payments: list[PlainPayment], query: Query, limit: int, data: st.DataObject
) -> None:
    start = data.draw(starts(payments))
    with stored(payments) as access:
        page = read_page(access, {**query.parameters, "from": start, "limit": limit})

    assert page == reference_page(payments, query, start=start, limit=limit)


@given(lists, queries(), limits)
@settings(max_examples=examples(60, long=1_000))
def test_walk_returns_each_match_once_and_the_same_pages_on_the_way_back(
    payments: list[PlainPayment], query: Query, limit: int
) -> None:
    with stored(payments) as access:
        forward, backward = walk_both_ways(
            lambda start: read_page(access, {**query.parameters, "from": start, "limit": limit})
        )

    walked = [payment_id for page in forward for payment_id in page.ids]
    assert walked == [payment.id for payment in sort_payments(payments, query) if query.matches(payment)]
    assert [page.ids for page in reversed(backward)] == [page.ids for page in forward]


@given(lists.filter(bool), queries(), limits)
@settings(max_examples=examples(30, long=500))
def test_start_that_the_key_does_not_see_is_an_error_for_any_query(
    payments: list[PlainPayment], query: Query, limit: int
) -> None:
    with stored(payments) as access:
        for start in ("pt_none", f"{payments[0].id}other"):
            with pytest.raises(LookupError):
                read_page(access, {**query.parameters, "from": start, "limit": limit})


@given(lists, queries())
@settings(max_examples=examples(60, long=1_000))
def test_orm_returns_the_same_payments_for_bound_values(payments: list[PlainPayment], query: Query) -> None:
    with stored(payments) as access:
        listing = searchable_list(access, query.parameters)
        by_orm = Payment.objects.visible_to(access)
        for applied in listing.selection.filters:
            by_orm = applied.filter.select(by_orm, applied.values)
        expected_ids = [payment.id for payment in by_orm.order_by(*listing.selection.order)]

        assert read_page(access, {**query.parameters, "limit": 25}).ids == expected_ids


# The responses to a client.


@pytest.fixture
def shop(organization: Organization) -> Organization:
    """Store ten payments, one a day from noon on, alternately succeeded and open."""
    for number in range(10):
        PaymentFactory.create(
            id=f"pt_{number}",
            organization=organization,
            created_at=NOON + timedelta(days=number),
            status=Status.OPEN if number % 2 else Status.SUCCEEDED,
            metadata='{"é &=":"+ %"}',
        )
    return organization


PARAMETERS = {
    "metadata[é &=]": "+ %",
    "createdAt[lt]": "2027-01-01T00:00:00+02:00",
    "createdAt[gte]": "2026-01-02",
    "status": "open,pending",
    "sort": "asc",
    "limit": "2",
}
QUERY_OF_LINKS = (
    "sort=asc&status=open%2Cpending&createdAt%5Bgte%5D=2026-01-02&createdAt%5Blt%5D=2027-01-01T00%3A00%3A00%2B02%3A00"
    "&metadata%5B%C3%A9%20%26%3D%5D=%2B%20%25"
)


@pytest.mark.parametrize("parameters", [PARAMETERS, dict(reversed(PARAMETERS.items()))], ids=["in order", "reversed"])
def test_links_carry_all_parameters_in_one_order(api: Api, shop: Organization, parameters: dict[str, str]) -> None:
    page = api.get(**parameters).json()

    links = [link["href"].partition("?")[2] for name, link in page["_links"].items() if name != "documentation"]
    assert links == [f"limit=2&from={start}&{QUERY_OF_LINKS}" for start in ("pt_1", "pt_5")]


def test_links_lead_to_all_matches_and_back(api: Api, shop: Organization) -> None:
    forward = api.walk("next", api.get(**PARAMETERS).json())
    backward = api.walk("previous", forward[-1])

    assert [payment_ids(page) for page in forward] == [["pt_1", "pt_3"], ["pt_5", "pt_7"], ["pt_9"]]
    assert [page["_embedded"] for page in reversed(backward)] == [page["_embedded"] for page in forward]
    assert api.follow(forward[1]["_links"]["self"]["href"]).json() == forward[1]


def test_start_that_no_longer_matches_is_still_a_position(api: Api, shop: Organization) -> None:
    first = api.get(status="open", limit=2).json()
    Payment.objects.filter(id="pt_5").update(status=Status.FAILED)

    second = api.follow(first["_links"]["next"]["href"]).json()

    assert first["_links"]["next"]["href"].endswith("limit=2&from=pt_5&status=open")
    assert payment_ids(second) == ["pt_3", "pt_1"]
    assert second["_links"]["previous"]["href"].endswith("limit=2&from=pt_9&status=open")


def test_page_after_the_last_match_links_to_itself_and_back(api: Api, shop: Organization) -> None:
    page = api.get(status="open", limit=2, from_="pt_0").json()

    links = {name: link["href"].partition("?")[2] for name, link in page["_links"].items()}
    assert page["count"] == 0
    assert links["self"] == "limit=2&from=pt_0&status=open"
    assert links["previous"] == "limit=2&from=pt_3&status=open"
    assert "next" not in links


@pytest.mark.parametrize("start", [{}, {"from_": "pt_9"}, {"from_": "pt_0"}, {"from_": "pt_unknown"}])
@pytest.mark.parametrize("parameters", [{"status": "open"}, {"status": "failed"}, {"metadata[a]": "b"}, PARAMETERS])
def test_filtered_page_is_read_after_the_key(
    api: Api, shop: Organization, parameters: dict[str, str], start: dict[str, str]
) -> None:
    with CaptureQueriesContext(connection) as statements:
        api.get(**parameters, **start)

    assert tables_read(statements) == [{KEY}, {STATE, PAYMENT}]


def test_both_orders_list_the_same_payments(api: Api, shop: Organization) -> None:
    newest_first = api.walk("next", api.get(limit=3).json())
    oldest_first = api.walk("next", api.get(limit=3, sort="asc").json())

    assert payment_ids(*oldest_first) == list(reversed(payment_ids(*newest_first)))
