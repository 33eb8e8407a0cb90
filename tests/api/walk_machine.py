"""A state machine in which clients walk while payments arrive, change and are imported again."""

import operator
import re
from collections.abc import Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
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
)

from payments.models import KeyScope, Mode, Payment, Status
from payments.record import record_time
from tests.support.api import Api, payment_ids
from tests.support.factories import DETAILS, NOON, ApiKeyFactory, OrganizationFactory
from tests.support.lines import line, store
from tests.support.lists import noon_plus
from tests.support.walks import store_payments, walk_errors


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

    def __init__(self, api: Api) -> None:
        super().__init__()
        self.api = api
        self.organization = api.key.organization_id
        self.sender = Api(api.client, ApiKeyFactory.create(organization=api.key.organization, scope=KeyScope.IMPORT))
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
    @rule(target=payments, letters=st.lists(letters, max_size=2), age=ages, status=statuses, over_http=st.booleans())
    def import_all_again_with_new_payments(
        self, letters: list[str], age: int, status: str, *, over_http: bool
    ) -> MultipleResults[str]:
        new_ids = [self.add_to_model(letter, age) for letter in letters]
        lines = [
            line(id=payment_id, status=status, createdAt=record_time(noon_plus(milliseconds)))
            for payment_id, milliseconds in self.created.items()
        ]
        if over_http:
            assert self.sender.import_lines(lines)["read"] == len(lines)
        else:
            assert store(lines).read == len(lines)
        self.note_statuses(dict.fromkeys(self.created, status))
        return multiple(*new_ids)

    @precondition(lambda self: len(self.active) < CONCURRENT_WALKS_MAX)
    @rule(target=walks, start=st.none() | payments, limit=limits, order=orders, statuses=some_statuses)
    def begin_walk(self, start: str | None, limit: int, order: str, statuses: Set[str]) -> MultipleResults[Walk]:
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
