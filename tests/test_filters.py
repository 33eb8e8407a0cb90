"""Filters and both orders, held to a plain Python list."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st
from moneyed import Money

from payments.listing import Listing
from payments.models import Mode, Organization, Payment, Status
from payments.pagination import Page, UnknownStart, fetch_page
from payments.parameters import list_parameters
from payments.rows import record_time
from tests.factories import NOON, OrganizationFactory, PaymentFactory
from tests.test_keyset import Place

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


def moment(instant: int) -> datetime:
    return NOON + timedelta(milliseconds=instant)


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


@st.composite
def asked(draw: st.DrawFn) -> tuple[dict[str, str], Matches]:
    """Return parameters, and what they ask of a payment."""
    query: dict[str, str] = {}
    conditions: list[Matches] = []

    def ask(name: str, text: str, condition: Matches) -> None:
        query[name] = text
        conditions.append(condition)

    for name, attribute in ATTRIBUTES.items():
        if words := draw(st.none() | st.lists(st.sampled_from(WORDS[name]), min_size=1, max_size=3)):
            ask(name, ",".join(words), one_of(attribute, words))
    for name, attribute in {"createdAt": "instant", "paidAt": "paid"}.items():
        for bound, instant in draw(bounds(INSTANTS)).items():
            at = draw(st.sampled_from([record_time(moment(instant)), moment(instant).isoformat()]))
            ask(f"{name}[{bound}]", at, within(attribute, bound, instant))
    if "currency" in query:
        for bound, cents in draw(bounds(CENTS)).items():
            ask(f"amount[{bound}]", str(Decimal(cents) / 100), within("cents", bound, cents))
    for key, text in draw(st.dictionaries(st.sampled_from(TEXTS), st.sampled_from(TEXTS), max_size=2)).items():
        ask(f"metadata[{key}]", text, holding(key, text))
    if order := draw(st.sampled_from(["", "asc", "desc"])):
        query["sort"] = order
    return query, lambda payment: all(condition(payment) for condition in conditions)


def bounds(values: Any) -> st.SearchStrategy[dict[str, int]]:
    """Return a lower bound, an upper one, both, or none, between which there is something."""
    either = st.tuples(st.sampled_from(["gte", "gt"]), st.sampled_from(["lte", "lt"]), *[st.sampled_from(values)] * 2)
    both = either.filter(lambda found: found[2] < found[3])
    kept = st.sampled_from([(), (0,), (1,), (0, 1)])
    return st.tuples(both, kept).map(lambda drawn: {drawn[0][side]: drawn[0][2 + side] for side in drawn[1]})


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
def kept(payments: list[Described]) -> Iterator[Place]:
    """Store payments, and the same again as somebody else's, and forget them afterwards."""
    with transaction.atomic():
        organization = OrganizationFactory.create(id=1)
        for mode, suffix in ((Mode.LIVE, ""), (Mode.TEST, "other")):
            Payment.objects.bulk_create(built(each, organization, mode, f"{each.id}{suffix}") for each in payments)
        yield Place(organization.pk, Mode.LIVE)
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


def listing(place: Place, query: dict[str, str]) -> Listing:
    return Listing(place, list_parameters(urlencode(query), is_known=lambda _: True).selection)


def shown(page: Page) -> tuple[list[str], str | None, str | None]:
    return [row[0] for row in page.rows], page.previous_from, page.next_from


@given(lists, asked(), limits, st.data())
@settings(max_examples=300)
def test_a_page_equals_the_reference_whatever_is_asked_for(
    payments: list[Described], asking: tuple[dict[str, str], Matches], limit: int, data: st.DataObject
) -> None:
    query, matches = asking
    start = data.draw(st.sampled_from([None, *(payment.id for payment in payments)]))

    with kept(payments) as place:
        page = fetch_page(listing(place, query), start=start, limit=limit)

    is_ascending = query.get("sort") == "asc"
    assert shown(page) == reference_page(payments, matches, is_ascending=is_ascending, start=start, limit=limit)


@given(lists, asked(), limits)
@settings(max_examples=100)
def test_walking_there_and_back_gives_all_that_matches_once_and_the_same_pages(
    payments: list[Described], asking: tuple[dict[str, str], Matches], limit: int
) -> None:
    query, matches = asking
    with kept(payments) as place:
        wanted = listing(place, query)
        there = [fetch_page(wanted, start=None, limit=limit)]
        while start := there[-1].next_from:
            there.append(fetch_page(wanted, start=start, limit=limit))
        back = [there[-1]]
        while start := back[-1].previous_from:
            back.append(fetch_page(wanted, start=start, limit=limit))

    walked = [payment_id for page in there for payment_id in shown(page)[0]]
    ordered = sorted(payments, key=lambda payment: payment.place, reverse=query.get("sort") != "asc")
    assert walked == [payment.id for payment in ordered if matches(payment)]
    assert [shown(page)[0] for page in reversed(back)] == [shown(page)[0] for page in there]


@given(lists.filter(bool), asked(), limits)
@settings(max_examples=50)
def test_a_start_that_the_key_does_not_see_is_an_error_whatever_is_asked_for(
    payments: list[Described], asking: tuple[dict[str, str], Matches], limit: int
) -> None:
    with kept(payments) as place:
        for start in ("pt_none", f"{payments[0].id}other"):
            with pytest.raises(UnknownStart):
                fetch_page(listing(place, asking[0]), start=start, limit=limit)


@given(lists, asked())
@settings(max_examples=100)
def test_the_orm_gives_the_same_for_the_values_themselves(
    payments: list[Described], asking: tuple[dict[str, str], Matches]
) -> None:
    with kept(payments) as place:
        wanted = listing(place, asking[0])
        by_orm = Payment.objects.visible_to(place)
        for given_filter in wanted.selection.filters:
            by_orm = given_filter.filter.narrow(by_orm, given_filter.values)
        expected = [payment.id for payment in by_orm.order_by(*wanted.selection.order)]

        assert shown(fetch_page(wanted, start=None, limit=25))[0] == expected
