"""A state machine in which clients follow the change feed while imports commit late, fail, and other writers commit."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from payments.anonymization import anonymize_payments
from payments.models import KeyScope, Mode, Payment
from payments.record import record_time
from tests.support.api import Api
from tests.support.api import payment_ids as ids_of
from tests.support.factories import NOON, ApiKeyFactory, PaymentFactory
from tests.support.held_imports import HeldImport, HeldImports
from tests.support.lines import line, store
from tests.support.sql import execute

FEED = "/v2/payments/changes"

HELD_MAX = 3
FOLLOWERS = 2

# The tables that a backup contains. Organizations and keys do not change.
TABLES = ("payments_payment", "payments_change", "payments_accessstate")

# SQL renews only the revision. The new one is another number than those of the service.
RENEW_BY_SQL = """
    UPDATE payments_accessstate SET revision = revision + 1 WHERE organization_id = 1 AND mode = 'live'
"""

# A payment that no import writes.

# Few payments, so that writers change the same ones.
ids = st.sampled_from([f"pt_{letter}" for letter in "ABCDEFGHIJKL"])
pairs = st.lists(ids, min_size=2, max_size=2, unique=True)
limits = st.integers(1, 4)
indexes = st.integers(0, 5)


def customer_of(payment_id: str) -> str:
    return f"ct_{ord(payment_id[-1]) % 2 + 1}"


@dataclass(eq=False)
class Follower:
    """A client that keeps a copy of the payments: their descriptions by ID."""

    href: str = ""
    copy: dict[str, str] = field(default_factory=dict)


class Feeds(RuleBasedStateMachine):
    """Writes payments in any order while clients follow the feed. Each write has another description, a number."""

    def __init__(self, api: Api, imports: HeldImports) -> None:
        super().__init__()
        self.api = api
        organization = api.key.organization
        self.sender = Api(api.client, ApiKeyFactory.create(organization=organization, scope=KeyScope.IMPORT))
        self.imports = imports
        self.writes = 0
        self.has_backup = False
        self.open: list[HeldImport] = []
        self.followers = [Follower() for _ in range(FOLLOWERS)]
        imports.end_all()
        for table in TABLES:
            execute(f"DELETE FROM {table}")  # noqa: S608

    @property
    def committed(self) -> dict[str, str]:
        """Return the descriptions of the committed payments by ID."""
        return dict(Payment.objects.visible_to(self.api.key.access).values_list("id", "description"))

    @property
    def can_write(self) -> bool:
        """Return whether another writer can write now. SQLite has one writer at a time."""
        return connection.vendor == "postgresql" or not self.open

    @property
    def locked(self) -> set[str]:
        """Return the IDs of payments that a held import has written."""
        return {payment_id for held in self.open for payment_id in held.rows}

    def next_texts(self, payment_ids: Sequence[str]) -> dict[str, str]:
        """Return a new description for each of the payments that no held import has written."""
        texts = {}
        for payment_id in payment_ids:
            if payment_id not in self.locked:
                self.writes += 1
                texts[payment_id] = str(self.writes)
        return texts

    def records(self, texts: dict[str, str], *, mode: str = Mode.LIVE) -> list[bytes]:
        return [
            line(
                id=payment_id,
                mode=mode,
                description=text,
                customerId=customer_of(payment_id),
                createdAt=record_time(NOON),
            )
            for payment_id, text in texts.items()
        ]

    @initialize()
    def store_first_payments(self) -> None:
        self.import_payments(["pt_A", "pt_B", "pt_C"])

    @precondition(lambda self: self.can_write and len(self.open) < HELD_MAX)
    @rule(payment_ids=pairs)
    def hold_import(self, payment_ids: list[str]) -> None:
        if self.locked.isdisjoint(payment_ids):
            self.open.append(self.imports.start())
            self.write_held(self.open[-1], payment_ids)

    @precondition(lambda self: self.open)
    @rule(index=indexes, payment_ids=pairs)
    def continue_import(self, index: int, payment_ids: list[str]) -> None:
        held = self.open[index % len(self.open)]
        if (self.locked - held.rows.keys()).isdisjoint(payment_ids):
            self.write_held(held, payment_ids)

    def write_held(self, held: HeldImport, payment_ids: list[str]) -> None:
        self.writes += 1
        texts = {payment_id: f"{self.writes} {payment_id}" for payment_id in payment_ids}
        held.write(self.records(texts))
        held.rows |= texts

    @precondition(lambda self: self.open)
    @rule(index=indexes, is_complete=st.booleans() | st.just(True))
    def end_import(self, index: int, is_complete: bool) -> None:
        held = self.open.pop(index % len(self.open))
        if is_complete:
            held.commit()
        else:
            held.fail()

    @precondition(lambda self: self.can_write)
    @rule(payment_ids=st.lists(ids, min_size=1, max_size=5, unique=True), over_http=st.booleans())
    def import_payments(self, payment_ids: list[str], *, over_http: bool = False) -> None:
        """Import payments over HTTP, or by a command together with one of the other mode."""
        records = self.records(self.next_texts(payment_ids))
        if over_http:
            self.sender.import_lines(records)
            return
        store([*records, *self.records({"pt_test": "foreign"}, mode=Mode.TEST)])

    @precondition(lambda self: self.can_write)
    @rule(kind=st.sampled_from(["update", "create", "anonymize", "SQL"]), payment_id=ids)
    def write_otherwise(self, kind: str, payment_id: str) -> None:
        if payment_id not in self.locked:
            self.writes += 1
            self.write_one(kind, payment_id, text=str(self.writes))

    def write_one(self, kind: str, payment_id: str, *, text: str) -> None:
        payments, customer_id = Payment.objects.filter(id=payment_id), customer_of(payment_id)
        match kind:
            case "update":
                payments.update(description=text)
            case "create" if not payments.exists():
                organization = self.api.key.organization
                PaymentFactory.create(id=payment_id, organization=organization, created_at=NOON, description=text)
            case "anonymize" if customer_id not in map(customer_of, self.locked):
                anonymize_payments(self.api.key.access, customer_id=customer_id, on_progress=lambda _: None)
            case "SQL":
                execute(f"UPDATE payments_payment SET description = '{text}' WHERE id = '{payment_id}'")  # noqa: S608
                execute(RENEW_BY_SQL)

    @precondition(lambda self: self.can_write)
    @rule()
    def back_up(self) -> None:
        for table in TABLES:
            execute(f"DROP TABLE IF EXISTS backup_{table}")
            execute(f"CREATE TABLE backup_{table} AS SELECT * FROM {table}")  # noqa: S608
        self.has_backup = True

    @precondition(lambda self: self.has_backup)
    @rule()
    def restore(self) -> None:
        """Restore the database from the last backup. All imports fail."""
        self.fail_imports()
        for table in TABLES:
            execute(f"DELETE FROM {table}")  # noqa: S608
            execute(f"INSERT INTO {table} SELECT * FROM backup_{table}")  # noqa: S608

    def fail_imports(self) -> None:
        while self.open:
            self.open.pop().fail()

    @rule(index=indexes, limit=limits)
    def read(self, index: int, limit: int) -> None:
        self.read_page(self.followers[index % FOLLOWERS], limit=limit)

    @rule(index=indexes)
    def read_and_compare(self, index: int) -> None:
        self.check(self.followers[index % FOLLOWERS])

    def teardown(self) -> None:
        self.fail_imports()
        for follower in self.followers:
            self.check(follower)
        self.check_unchanged_import()

    def check_unchanged_import(self) -> None:
        """Check that payments do not appear again if they are imported as they are."""
        records = self.records(self.committed)
        store(records)  # payments of the ORM differ in other fields
        before = self.read_to_end(Follower())
        assert store(records).written == 0
        assert self.read_to_end(Follower()) == before, "repeated"

    def check(self, follower: Follower) -> None:
        """Check that a client that has read the feed to its end has the current state of every payment (P5)."""
        self.read_to_end(follower)
        committed = self.committed
        missed = committed.keys() - follower.copy.keys()
        foreign = follower.copy.keys() - committed.keys()
        stale = {key for key, text in committed.items() if follower.copy.get(key) != text} - missed
        assert not foreign, f"foreign: {foreign}"
        assert not missed, f"missed: {missed}"
        assert not stale, f"stale: {stale}"

    def read_to_end(self, follower: Follower) -> list[str]:
        """Follow the feed to its end. Return the IDs that the client reads."""
        read: list[str] = []
        page = self.read_page(follower)
        while True:
            read += ids_of(page)
            if "next" not in page["_links"]:
                assert len(read) == len(set(read)), f"repeated: {read}"
                return read
            page = self.read_page(follower)

    def read_page(self, follower: Follower, *, limit: int = 2) -> Any:
        """Read one page into the copy and return it. After 410, the client starts again."""
        href = re.sub(r"limit=\d+", f"limit={limit}", follower.href) or f"{FEED}?limit={limit}"
        response = self.api.follow(href)
        if response.status_code == 410:
            follower.copy, follower.href = {}, ""
            return self.read_page(follower, limit=limit)
        assert response.status_code == 200, response.content
        page = response.json()
        for payment in page["_embedded"]["payments"]:
            assert payment["mode"] == Mode.LIVE, "foreign: another mode"
            follower.copy[payment["id"]] = payment["description"]
        assert page["_links"].get("next", page["_links"]["later"]) == page["_links"]["later"]
        follower.href = page["_links"]["later"]["href"]
        return page
