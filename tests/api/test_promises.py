"""What a walk promises (contract, section 1: P1 to P4) while payments arrive, change and are imported again."""

import operator
import re
from collections.abc import Callable, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from payments.ingest import import_payments
from payments.listing import Listing
from payments.models import Mode, Payment, PaymentQuerySet, Status
from payments.ordering import NEWEST_FIRST
from payments.page import Page
from payments.record import record_time
from payments.rows import ID, POSITIONS, Row, as_rows
from tests.support.api import Api, ids
from tests.support.factories import DETAILS, NOON, OrganizationFactory
from tests.support.lines import line, source
from tests.support.scale import SEED, examples, times
from tests.support.service import Service
from tests.support.walks import faults, moment, store, walk_while_two_write


@dataclass(eq=False)
class Walk:
    """A client on its way along `relation`, and how many payments had landed among others before."""

    relation: str
    promised: Set[str]
    landed_before: int
    statuses: Set[str] = frozenset()  # which are asked for; none: all
    href: str = ""
    pages: list[list[str]] = field(default_factory=list)


# Pages of few payments, at few instants: a walk takes many steps, and most payments are tied.
limits = st.integers(1, 4)
ages = st.integers(-1, 4)  # before the newest instant; -1 is a new one
# What an id begins with: among payments of one instant it decides, so that one lands anywhere between the others.
letters = st.sampled_from("09AZaz")
statuses = st.sampled_from(Status.values)

orders = st.sampled_from(["desc", "asc"])
some_statuses: st.SearchStrategy[Set[str]] = st.just(frozenset()) | st.frozensets(statuses, min_size=1, max_size=3)

WALKS_AT_ONCE_MAX = 3


class Walks(RuleBasedStateMachine):
    """Payments come and change in any order while clients walk; what there is, is known from plain Python."""

    payments = Bundle("payments")
    walks = Bundle("walks")
    walks_back = Bundle("walks_back")

    def __init__(self, api: Api, *, is_selective: bool) -> None:
        super().__init__()
        self.api = api
        self.is_selective = is_selective  # whether walks ask for some statuses, in either order
        self.organization = api.key.organization_id
        self.now = 0
        self.ids_made = 0
        self.own: dict[str, int] = {}  # the instants of the payments that the key may see
        self.statuses: dict[str, str] = {}  # and their statuses
        self.landed = 0  # how many of them came in among others, not as the newest
        self.under_way: list[Walk] = []
        self.stack = ExitStack()
        self.stack.enter_context(transaction.atomic())
        self.stack.callback(transaction.set_rollback, True)
        self.stranger = OrganizationFactory.create(id=2).id

    @initialize(target=payments, letters=st.lists(letters, min_size=4, max_size=8))
    def payments_are_there(self, letters: list[str]) -> MultipleResults[str]:
        return self.arrive(*((letter, number % 3) for number, letter in enumerate(letters)))

    @rule(target=payments, letter=letters, age=ages)
    def a_payment_arrives(self, letter: str, age: int) -> MultipleResults[str]:
        return self.arrive((letter, age))

    @rule(letter=letters, age=ages, is_theirs=st.booleans())
    def one_arrives_that_is_a_strangers_or_of_the_other_mode(self, letter: str, age: int, is_theirs: bool) -> None:
        organization, mode = (self.stranger, Mode.LIVE) if is_theirs else (self.organization, Mode.TEST)
        store({self.new_id(letter): self.now - age}, organization=organization, mode=mode)

    @precondition(lambda self: self.under_way)
    @rule(payment_id=payments, status=statuses, details=st.sampled_from(list(DETAILS.values())))
    def a_payment_changes(self, payment_id: str, status: str, details: str | None) -> None:
        Payment.objects.filter(id=payment_id).update(status=status, details=details, paid_at=NOON)
        self.note({payment_id: status})

    @precondition(lambda self: self.under_way)
    @rule(target=payments, letters=st.lists(letters, max_size=2), age=ages, status=statuses)
    def all_are_imported_again_and_old_ones_with_them(
        self, letters: list[str], age: int, status: str
    ) -> MultipleResults[str]:
        new = [self.expect(letter, age) for letter in letters]
        lines = [
            line(id=payment_id, status=status, createdAt=record_time(moment(instant)))
            for payment_id, instant in self.own.items()
        ]
        imported = import_payments([source(b"\n".join(lines))], on_refused=lambda place, error: None)
        assert (imported.read, imported.refused) == (len(lines), 0)
        self.note(dict.fromkeys(self.own, status))
        return multiple(*new)

    @precondition(lambda self: len(self.under_way) < WALKS_AT_ONCE_MAX)
    @rule(target=walks, start=st.none() | payments, limit=limits, order=orders, asked=some_statuses)
    def a_walk_begins(self, start: str | None, limit: int, order: str, asked: Set[str]) -> MultipleResults[Walk]:
        if not self.is_selective:
            order, asked = "desc", frozenset()
        is_behind = operator.le if order == "desc" else operator.ge
        promised = {
            each
            for each in self.own
            if (start is None or is_behind(self.place(each), self.place(start)))
            and (not asked or self.statuses[each] in asked)
        }
        selection = {"sort": order} | ({"status": ",".join(asked)} if asked else {})
        return self.begin("next", promised, start, limit, statuses=asked, **selection)

    @precondition(lambda self: len(self.under_way) < WALKS_AT_ONCE_MAX)
    @rule(target=walks_back, start=payments, limit=limits)
    def a_walk_back_begins(self, start: str, limit: int) -> MultipleResults[Walk]:
        promised = {each for each in self.own if self.place(each) >= self.place(start)}
        return self.begin("previous", promised, start, limit)

    @rule(target=walks, walk=consumes(walks))
    def a_walk_goes_on(self, walk: Walk) -> MultipleResults[Walk]:
        return self.go_on(walk)

    @rule(target=walks, walk=consumes(walks), limit=limits)
    def a_walk_goes_on_with_pages_of_another_size(self, walk: Walk, limit: int) -> MultipleResults[Walk]:
        walk.href = re.sub(r"limit=\d+", f"limit={limit}", walk.href)
        return self.go_on(walk)

    @rule(target=walks_back, walk=consumes(walks_back))
    def a_walk_back_goes_on(self, walk: Walk) -> MultipleResults[Walk]:
        return self.go_on(walk)

    def teardown(self) -> None:
        """Bring every walk to its end, and forget the payments."""
        with self.stack:
            while self.under_way:
                self.go_on(self.under_way[0])

    def begin(
        self,
        relation: str,
        promised: Set[str],
        start: str | None,
        limit: int,
        *,
        statuses: Set[str] = frozenset(),
        **selection: str,
    ) -> MultipleResults[Walk]:
        walk = Walk(relation, promised, landed_before=self.landed, statuses=statuses)
        return self.read(walk, self.api.get(limit=limit, **selection, **({} if start is None else {"from": start})))

    def go_on(self, walk: Walk) -> MultipleResults[Walk]:
        self.under_way.remove(walk)
        return self.read(walk, self.api.follow(walk.href))

    def read(self, walk: Walk, response: Any) -> MultipleResults[Walk]:
        assert response.status_code == 200, response.content
        page = response.json()
        walk.pages.append(ids(page))
        if walk.statuses:
            assert {self.statuses[each] for each in ids(page)} <= walk.statuses, "not asked for"
        walk.href = page["_links"].get(walk.relation, {}).get("href", "")
        if walk.relation == "next":
            self.check(walk)
        else:
            self.check_back(walk)
        if not walk.href:
            return multiple()
        self.under_way.append(walk)
        return multiple(walk)

    def check(self, walk: Walk) -> None:
        found = faults(walk.pages, promised=walk.promised, own=self.own.keys())
        assert not found.foreign, f"foreign: {found.foreign}"
        assert not found.doubled, f"doubled: {found.doubled}"
        assert walk.href or not found.skipped, f"skipped: {found.skipped}"

    def check_back(self, walk: Walk) -> None:
        """Hold a walk back to less: a page has no room for what lands in it after its start was named."""
        found = faults(walk.pages, promised=walk.promised, own=self.own.keys())
        assert not found.foreign, f"foreign: {found.foreign}"
        assert all(walk.pages), "astray: a page of none"
        starts = [self.place(page[0]) for page in walk.pages]
        assert walk.href or len(found.skipped) <= self.landed - walk.landed_before, f"skipped: {found.skipped}"
        assert walk.href or starts[-1] == max(map(self.place, self.own)), f"astray: {starts}"
        assert starts == sorted(set(starts)), f"astray: {starts}"

    def arrive(self, *payments: tuple[str, int]) -> MultipleResults[str]:
        """Store payments, each given by what its id begins with and by its age."""
        new = [self.expect(letter, age) for letter, age in payments]
        store({payment_id: self.own[payment_id] for payment_id in new}, organization=self.organization, mode=Mode.LIVE)
        return multiple(*new)

    def expect(self, letter: str, age: int) -> str:
        payment_id = self.new_id(letter)
        self.own[payment_id] = self.now - age
        self.statuses[payment_id] = Status.OPEN
        self.now = max(self.now, self.now - age)
        self.landed += payment_id != max(self.own, key=self.place)
        return payment_id

    def note(self, changed: dict[str, str]) -> None:
        """Promise a walk no payment that does not match throughout."""
        self.statuses |= changed
        for walk in self.under_way:
            left = {payment_id for payment_id, status in changed.items() if status not in walk.statuses}
            walk.promised = walk.promised - left if walk.statuses else walk.promised

    def new_id(self, letter: str) -> str:
        self.ids_made += 1
        return f"pt_{letter}{self.ids_made}"

    def place(self, payment_id: str) -> tuple[int, str]:
        return self.own[payment_id], payment_id


def run(api: Api, *, is_selective: bool, **options: Any) -> None:
    # Whatever makes one serves, though a class is asked for.
    machine: Any = partial(Walks, api, is_selective=is_selective)
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=40, **options))


@pytest.mark.hypothesis
def test_walks_keep_their_promises_whatever_happens_meanwhile(api: Api) -> None:
    run(api, is_selective=True, max_examples=examples(200, long=6_000))


# What the promises forbid: each in turn stands where the right one does, and the same machine finds it out.


def page_by_offset(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Count: right while nothing arrives."""
    rows = newest_first(visible(listing))
    first = int(start[len(OFFSET) :]) if start and start.startswith(OFFSET) else index(rows, start)
    page = cut(rows, first, limit)
    return page._replace(next_from=page.next_from and f"{OFFSET}{first + limit}")


def page_by_moment(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Remember the moment alone: right while no two payments share one."""
    rows = newest_first(visible(listing))
    moments = [row[CREATED_AT] for row in rows]
    return cut(rows, moments.index(moments[index(rows, start)]) if rows else 0, limit)


def page_after_start(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Begin behind the payment that the link names."""
    rows = newest_first(visible(listing))
    return cut(rows, 0 if start is None else index(rows, start) + 1, limit)


def page_by_status(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Order by a column that changes."""
    rows = list(as_rows(visible(listing).order_by("status", *NEWEST_FIRST)))
    return cut(rows, index(rows, start), limit)


def page_of_everybody(listing: Listing, *, start: str | None, limit: int) -> Page:
    rows = newest_first(Payment.objects.all())
    return cut(rows, index(rows, start), limit)


def page_of_both_modes(listing: Listing, *, start: str | None, limit: int) -> Page:
    rows = newest_first(Payment.objects.filter(organization_id=listing.access.organization_id))
    return cut(rows, index(rows, start), limit)


OFFSET = "pt_offset"
CREATED_AT = POSITIONS["created_at"]


def visible(listing: Listing) -> PaymentQuerySet:
    return Payment.objects.visible_to(listing.access)


def newest_first(payments: PaymentQuerySet) -> list[Row]:
    return list(as_rows(payments.order_by(*NEWEST_FIRST)))


def index(rows: list[Row], start: str | None) -> int:
    return 0 if start is None else [row[ID] for row in rows].index(start)


def cut(rows: list[Row], first: int, limit: int) -> Page:
    """Return the page that begins with `rows[first]`, and what its neighbours begin with."""
    names = [row[ID] for row in rows]
    return Page(
        rows[first : first + limit],
        previous_from=names[max(0, first - limit)] if first > 0 else None,
        next_from=names[first + limit] if first + limit < len(rows) else None,
    )


@pytest.mark.parametrize(
    ("wrong_page", "fault"),
    [
        (page_by_offset, "skipped|doubled|astray"),
        (page_by_moment, "skipped|doubled|astray"),
        (page_after_start, "skipped|doubled|astray"),
        (page_by_status, "skipped|doubled|astray"),
        (page_of_everybody, "foreign"),
        (page_of_both_modes, "foreign"),
    ],
)
def test_pages_that_keep_no_promise_are_found_out(
    api: Api, monkeypatch: pytest.MonkeyPatch, wrong_page: Callable[..., Page], fault: str
) -> None:
    monkeypatch.setattr("payments.api.pagination.fetch_page", wrong_page)

    with pytest.raises(AssertionError, match=fault):
        run(api, is_selective=False, max_examples=100, phases=[Phase.generate], report_multiple_bugs=False)


# The same promises of the deployed service, while two writers commit.


@pytest.mark.parametrize("seed", [SEED], ids="SEED={}".format)
def test_walks_over_http_keep_their_promises_while_two_writers_commit(service: Service, db: None, seed: int) -> None:
    walk_while_two_write(service.base_url, service.database_url, walks=times(400, long=100_000), seed=seed)
