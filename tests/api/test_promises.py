"""The promises of a walk (contract, section 1: P1 to P4) while payments arrive, change and are imported again."""

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
from payments.rows import COLUMN_INDEX, ID, Row, as_rows
from tests.support.api import Api, payment_ids
from tests.support.factories import DETAILS, NOON, OrganizationFactory
from tests.support.lines import line, source
from tests.support.lists import noon_plus
from tests.support.scale import SEED, examples, times
from tests.support.service import Service
from tests.support.walks import store_payments, walk_errors, walk_while_two_write


@dataclass(eq=False)
class Walk:
    """A client that follows the links of one relation."""

    relation: str
    promised: Set[str]
    inserted_before: int  # `Walks.inserted` when the walk began
    statuses: Set[str] = frozenset()  # the filter of the walk; empty: no filter
    href: str = ""
    pages: list[list[str]] = field(default_factory=list)


# Small pages and few times: a walk takes many steps, and most payments share their time with others.
limits = st.integers(1, 4)
ages = st.integers(-1, 4)  # milliseconds before the newest payment; -1 is a newer payment
# The first character of an ID. It decides the order of payments with the same time.
letters = st.sampled_from("09AZaz")
statuses = st.sampled_from(Status.values)

orders = st.sampled_from(["desc", "asc"])
some_statuses: st.SearchStrategy[Set[str]] = st.just(frozenset()) | st.frozensets(statuses, min_size=1, max_size=3)

CONCURRENT_WALKS_MAX = 3


class Walks(RuleBasedStateMachine):
    """Stores and changes payments in any order while clients walk. A plain Python model knows the promises.

    Times are milliseconds after noon.
    """

    payments = Bundle("payments")
    walks = Bundle("walks")
    walks_back = Bundle("walks_back")

    def __init__(self, api: Api, *, has_filters: bool) -> None:
        super().__init__()
        self.api = api
        self.has_filters = has_filters  # whether walks filter by status and use both orders
        self.organization = api.key.organization_id
        self.now = 0
        self.ids_made = 0
        self.created: dict[str, int] = {}  # the time at which each visible payment was created
        self.statuses: dict[str, str] = {}  # the status of each visible payment
        self.inserted = 0  # the number of visible payments that were not the newest when they arrived
        self.active: list[Walk] = []
        self.stack = ExitStack()
        self.stack.enter_context(transaction.atomic())
        self.stack.callback(transaction.set_rollback, True)
        self.other_organization = OrganizationFactory.create(id=2).id

    @initialize(target=payments, letters=st.lists(letters, min_size=4, max_size=8))
    def store_first_payments(self, letters: list[str]) -> MultipleResults[str]:
        return self.store_visible(*((letter, number % 3) for number, letter in enumerate(letters)))

    @rule(target=payments, letter=letters, age=ages)
    def store_payment(self, letter: str, age: int) -> MultipleResults[str]:
        return self.store_visible((letter, age))

    @rule(letter=letters, age=ages, is_other_organization=st.booleans())
    def store_foreign_payment(self, letter: str, age: int, is_other_organization: bool) -> None:
        organization, mode = self.organization, Mode.TEST
        if is_other_organization:
            organization, mode = self.other_organization, Mode.LIVE
        store_payments({self.new_id(letter): self.now - age}, organization=organization, mode=mode)

    @precondition(lambda self: self.active)
    @rule(payment_id=payments, status=statuses, details=st.sampled_from(list(DETAILS.values())))
    def change_payment(self, payment_id: str, status: str, details: str | None) -> None:
        Payment.objects.filter(id=payment_id).update(status=status, details=details, paid_at=NOON)
        self.note_statuses({payment_id: status})

    @precondition(lambda self: self.active)
    @rule(target=payments, letters=st.lists(letters, max_size=2), age=ages, status=statuses)
    def import_all_again_with_new_payments(self, letters: list[str], age: int, status: str) -> MultipleResults[str]:
        new_ids = [self.add_to_model(letter, age) for letter in letters]
        lines = [
            line(id=payment_id, status=status, createdAt=record_time(noon_plus(milliseconds)))
            for payment_id, milliseconds in self.created.items()
        ]
        result = import_payments([source(b"\n".join(lines))], on_refused=lambda location, error: None)
        assert (result.read, result.refused) == (len(lines), 0)
        self.note_statuses(dict.fromkeys(self.created, status))
        return multiple(*new_ids)

    @precondition(lambda self: len(self.active) < CONCURRENT_WALKS_MAX)
    @rule(target=walks, start=st.none() | payments, limit=limits, order=orders, statuses=some_statuses)
    def begin_walk(self, start: str | None, limit: int, order: str, statuses: Set[str]) -> MultipleResults[Walk]:
        if not self.has_filters:
            order, statuses = "desc", frozenset()
        is_at_or_after = operator.le if order == "desc" else operator.ge
        promised = {
            payment_id
            for payment_id in self.created
            if (start is None or is_at_or_after(self.position(payment_id), self.position(start)))
            and (not statuses or self.statuses[payment_id] in statuses)
        }
        parameters = {"sort": order} | ({"status": ",".join(statuses)} if statuses else {})
        return self.read_first_page("next", promised, start, limit, statuses=statuses, **parameters)

    @precondition(lambda self: len(self.active) < CONCURRENT_WALKS_MAX)
    @rule(target=walks_back, start=payments, limit=limits)
    def begin_walk_back(self, start: str, limit: int) -> MultipleResults[Walk]:
        promised = {payment_id for payment_id in self.created if self.position(payment_id) >= self.position(start)}
        return self.read_first_page("previous", promised, start, limit)

    @rule(target=walks, walk=consumes(walks))
    def continue_walk(self, walk: Walk) -> MultipleResults[Walk]:
        return self.read_next_page(walk)

    @rule(target=walks, walk=consumes(walks), limit=limits)
    def continue_walk_with_another_limit(self, walk: Walk, limit: int) -> MultipleResults[Walk]:
        walk.href = re.sub(r"limit=\d+", f"limit={limit}", walk.href)
        return self.read_next_page(walk)

    @rule(target=walks_back, walk=consumes(walks_back))
    def continue_walk_back(self, walk: Walk) -> MultipleResults[Walk]:
        return self.read_next_page(walk)

    def teardown(self) -> None:
        """Finish all walks and remove the payments."""
        with self.stack:
            while self.active:
                self.read_next_page(self.active[0])

    def read_first_page(
        self,
        relation: str,
        promised: Set[str],
        start: str | None,
        limit: int,
        *,
        statuses: Set[str] = frozenset(),
        **parameters: str,
    ) -> MultipleResults[Walk]:
        walk = Walk(relation, promised, inserted_before=self.inserted, statuses=statuses)
        if start is not None:
            parameters["from"] = start
        return self.read_page(walk, self.api.get(limit=limit, **parameters))

    def read_next_page(self, walk: Walk) -> MultipleResults[Walk]:
        self.active.remove(walk)
        return self.read_page(walk, self.api.follow(walk.href))

    def read_page(self, walk: Walk, response: Any) -> MultipleResults[Walk]:
        assert response.status_code == 200, response.content
        page = response.json()
        ids = payment_ids(page)
        walk.pages.append(ids)
        if walk.statuses:
            assert {self.statuses[payment_id] for payment_id in ids} <= walk.statuses, "wrong status"
        walk.href = page["_links"].get(walk.relation, {}).get("href", "")
        if walk.relation == "next":
            self.check(walk)
        else:
            self.check_back(walk)
        if not walk.href:
            return multiple()
        self.active.append(walk)
        return multiple(walk)

    def check(self, walk: Walk) -> None:
        errors = walk_errors(walk.pages, promised=walk.promised, visible=self.created.keys())
        assert not errors.foreign, f"foreign: {errors.foreign}"
        assert not errors.repeated, f"repeated: {errors.repeated}"
        assert walk.href or not errors.skipped, f"skipped: {errors.skipped}"

    def check_back(self, walk: Walk) -> None:
        """Check the weaker promises of a walk back.

        A page has no room for a payment that arrives within it after the link to the page was written.
        """
        errors = walk_errors(walk.pages, promised=walk.promised, visible=self.created.keys())
        assert not errors.foreign, f"foreign: {errors.foreign}"
        assert all(walk.pages), "astray: an empty page"
        starts = [self.position(ids[0]) for ids in walk.pages]
        assert walk.href or len(errors.skipped) <= self.inserted - walk.inserted_before, f"skipped: {errors.skipped}"
        assert walk.href or starts[-1] == max(map(self.position, self.created)), f"astray: {starts}"
        assert starts == sorted(set(starts)), f"astray: {starts}"

    def store_visible(self, *payments: tuple[str, int]) -> MultipleResults[str]:
        """Store payments with these first characters of their IDs and these ages. Return the IDs."""
        new_ids = [self.add_to_model(letter, age) for letter, age in payments]
        created = {payment_id: self.created[payment_id] for payment_id in new_ids}
        store_payments(created, organization=self.organization, mode=Mode.LIVE)
        return multiple(*new_ids)

    def add_to_model(self, letter: str, age: int) -> str:
        payment_id = self.new_id(letter)
        self.created[payment_id] = self.now - age
        self.statuses[payment_id] = Status.OPEN
        self.now = max(self.now, self.now - age)
        self.inserted += payment_id != max(self.created, key=self.position)
        return payment_id

    def note_statuses(self, changed: dict[str, str]) -> None:
        """Store statuses in the model. A walk is promised only payments that always match its filter."""
        self.statuses |= changed
        for walk in self.active:
            if walk.statuses:
                walk.promised -= {payment_id for payment_id, status in changed.items() if status not in walk.statuses}

    def new_id(self, letter: str) -> str:
        self.ids_made += 1
        return f"pt_{letter}{self.ids_made}"

    def position(self, payment_id: str) -> tuple[int, str]:
        return self.created[payment_id], payment_id


def run(api: Api, *, has_filters: bool, **options: Any) -> None:
    # hypothesis declares a class as the parameter, but accepts any callable.
    machine: Any = partial(Walks, api, has_filters=has_filters)
    run_state_machine_as_test(machine, settings=settings(stateful_step_count=40, **options))


@pytest.mark.hypothesis
def test_walks_keep_their_promises_whatever_happens(api: Api) -> None:
    run(api, has_filters=True, max_examples=examples(200, long=6_000))


# Wrong implementations of `fetch_page`. The state machine must catch each of them.


def page_by_offset(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Count positions: correct while no payment arrives."""
    rows = newest_first(visible(listing))
    first = int(start[len(OFFSET) :]) if start and start.startswith(OFFSET) else index(rows, start)
    page = cut(rows, first, limit)
    return page._replace(next_from=page.next_from and f"{OFFSET}{first + limit}")


def page_by_time(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Continue at a time: correct while no two payments share one."""
    rows = newest_first(visible(listing))
    created = [row[CREATED_AT] for row in rows]
    return cut(rows, created.index(created[index(rows, start)]) if rows else 0, limit)


def page_after_start(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Begin after the payment that the link names."""
    rows = newest_first(visible(listing))
    return cut(rows, 0 if start is None else index(rows, start) + 1, limit)


def page_by_status(listing: Listing, *, start: str | None, limit: int) -> Page:
    """Order by a column that changes."""
    rows = list(as_rows(visible(listing).order_by("status", *NEWEST_FIRST)))
    return cut(rows, index(rows, start), limit)


def page_of_all_organizations(listing: Listing, *, start: str | None, limit: int) -> Page:
    rows = newest_first(Payment.objects.all())
    return cut(rows, index(rows, start), limit)


def page_of_both_modes(listing: Listing, *, start: str | None, limit: int) -> Page:
    rows = newest_first(Payment.objects.filter(organization_id=listing.access.organization_id))
    return cut(rows, index(rows, start), limit)


OFFSET = "pt_offset"
CREATED_AT = COLUMN_INDEX["created_at"]


def visible(listing: Listing) -> PaymentQuerySet:
    return Payment.objects.visible_to(listing.access)


def newest_first(payments: PaymentQuerySet) -> list[Row]:
    return list(as_rows(payments.order_by(*NEWEST_FIRST)))


def index(rows: list[Row], start: str | None) -> int:
    return 0 if start is None else [row[ID] for row in rows].index(start)


def cut(rows: list[Row], first: int, limit: int) -> Page:
    """Return the page that begins with `rows[first]`."""
    ids = [row[ID] for row in rows]
    return Page(
        rows[first : first + limit],
        previous_from=ids[max(0, first - limit)] if first > 0 else None,
        next_from=ids[first + limit] if first + limit < len(rows) else None,
    )


@pytest.mark.parametrize(
    ("wrong_page", "error"),
    [
        (page_by_offset, "skipped|repeated|astray"),
        (page_by_time, "skipped|repeated|astray"),
        (page_after_start, "skipped|repeated|astray"),
        (page_by_status, "skipped|repeated|astray"),
        (page_of_all_organizations, "foreign"),
        (page_of_both_modes, "foreign"),
    ],
)
def test_wrong_page_breaks_a_promise(
    api: Api, monkeypatch: pytest.MonkeyPatch, wrong_page: Callable[..., Page], error: str
) -> None:
    monkeypatch.setattr("payments.api.pagination.fetch_page", wrong_page)

    with pytest.raises(AssertionError, match=f"^({error}): "):
        run(api, has_filters=False, max_examples=100, phases=[Phase.generate], report_multiple_bugs=False)


# The same promises of the deployed service, while two writers commit.


@pytest.mark.parametrize("seed", [SEED], ids="SEED={}".format)
def test_walks_over_http_keep_their_promises_during_writes(service: Service, db: None, seed: int) -> None:
    walk_while_two_write(service.base_url, service.database_url, walks=times(400, long=100_000), seed=seed)
