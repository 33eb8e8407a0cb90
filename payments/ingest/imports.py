"""An import from end to end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction

from payments.ingest.checking import InvalidRecord, checked
from payments.ingest.columns import StoredRow, row
from payments.ingest.glance import usual
from payments.ingest.reading import Place, Source, Unreadable, read
from payments.ingest.writing import misplaced, prepare, stage, write
from payments.models import Organization

BATCH_RECORDS = 5000
BATCH_BYTES = 2**24

# How long the thread that has an answer from the server waits for the one that reads; Python's own 5 ms add up.
SWITCH_SECONDS = 0.0005

# A file of another kind altogether is not read to its end.
REFUSED_MAX = 100

Placed: TypeAlias = tuple[Place, StoredRow]


@dataclass
class Batch:
    """What was found in a piece of the sources, put in order for who writes it."""

    faults: list[tuple[Place, InvalidRecord | Unreadable]]
    organization_ids: set[int]
    rounds: list[list[Placed]]  # in each a payment is there once


@dataclass
class Imported:
    """How many records were read, how many of them refused, and how many rows the others changed."""

    read: int = 0
    refused: int = 0
    changed: int = 0


def import_payments(
    sources: Iterable[Source],
    *,
    on_refused: Callable[[Place, InvalidRecord], None],
    keep_going: bool = False,
    create_organizations: bool = False,
) -> Imported:
    """Load records of the API's own form: a payment that is new is added, one that changed is updated.

    Where a record is refused, `on_refused` is told. Then nothing at all is written; with `keep_going`, the others are.
    A payment's organization must exist; with `create_organizations`, one that does not is made.
    """
    run = Import(on_refused, keep_going=keep_going, create_organizations=create_organizations)
    with transaction.atomic():
        prepare()
        with taker(run) as take:
            for batch in batches(sources):
                take(batch)
                if run.gives_up:
                    break
        if not run.goes_on:
            transaction.set_rollback(True)
            run.imported.changed = 0
    return run.imported


@contextmanager
def taker(run: Import) -> Iterator[Callable[[Batch], None]]:
    """Give what takes the batches; while a server is busy with one, the next is read.

    For that a thread has the connection, and has it alone, until the last batch is taken.
    """
    if connection.vendor != "postgresql":
        yield run.take
        return
    shared = connections[DEFAULT_DB_ALIAS]
    patience = sys.getswitchinterval()
    shared.inc_thread_sharing()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with ThreadPoolExecutor(1, initializer=connections.__setitem__, initargs=(DEFAULT_DB_ALIAS, shared)) as thread:
            taken = being_taken = NOTHING
            under_way = thread.submit(run.take, NOTHING)

            def take(batch: Batch) -> None:
                nonlocal under_way, taken, being_taken
                taken = NOTHING  # freed now, while the server is at work: the thread would keep it waiting for that
                under_way.result()
                if not run.gives_up:
                    under_way = thread.submit(run.take, batch)
                    taken, being_taken = being_taken, batch

            yield take
            under_way.result()
    finally:
        sys.setswitchinterval(patience)
        shared.dec_thread_sharing()


def batches(sources: Iterable[Source]) -> Iterator[Batch]:
    """Yield what was found, in pieces of bounded size."""
    rows: list[Placed] = []
    faults: list[tuple[Place, InvalidRecord | Unreadable]] = []
    size = 0
    for place, found, length in findings(sources):
        if isinstance(found, StoredRow):
            rows.append((place, found))
        else:
            faults.append((place, found))
        size += length
        if len(rows) + len(faults) == BATCH_RECORDS or size >= BATCH_BYTES:
            yield in_order(rows, faults)
            rows, faults, size = [], [], 0
    yield in_order(rows, faults)


def findings(sources: Iterable[Source]) -> Iterator[tuple[Place, StoredRow | InvalidRecord | Unreadable, int]]:
    """Yield where each record is, its row or what is wrong with it, and how many bytes it has."""
    for source in sources:
        try:
            for place, text in read(source):
                try:
                    yield place, usual(text) or row(checked(text)), len(text)
                except InvalidRecord as error:
                    yield place, error, len(text)
        except Unreadable as error:
            yield error.place, error, 0


def in_order(rows: list[Placed], faults: list[tuple[Place, InvalidRecord | Unreadable]]) -> Batch:
    return Batch(faults, {stored.organization_id for _, stored in rows}, list(rounds(rows)))


def rounds(rows: list[Placed]) -> Iterator[list[Placed]]:
    """Yield the first row of each payment, then the second of each, and so on, until all were there."""
    while rows:
        once: dict[str, Placed] = {}
        again = [each for each in rows if once.setdefault(each[1].id, each) is not each]
        yield list(once.values())
        rows = again


NOTHING = in_order([], [])


@dataclass
class Import:
    """One run: what it was told to do, and how far it has come."""

    on_refused: Callable[[Place, InvalidRecord], None]
    keep_going: bool
    create_organizations: bool
    imported: Imported = field(default_factory=Imported)
    organizations: dict[int, bool] = field(default_factory=dict)

    @property
    def goes_on(self) -> bool:
        return self.keep_going or not self.imported.refused

    @property
    def gives_up(self) -> bool:
        return not self.keep_going and self.imported.refused >= REFUSED_MAX

    def take(self, batch: Batch) -> None:
        """Name what is wrong with the records of a batch, and write the others."""
        for place, fault in batch.faults:
            if isinstance(fault, Unreadable):
                self.refuse(place, InvalidRecord(None, fault.reason))
            else:
                self.imported.read += 1
                self.refuse(place, fault)
            if self.gives_up:
                return
        unknown = {each for each in batch.organization_ids if not self.has_organization(each)}
        for once in batch.rounds:
            self.imported.read += len(once)
            self.write(self.admitted(once, unknown) if unknown else once)

    def admitted(self, placed: list[Placed], unknown: set[int]) -> list[Placed]:
        """Refuse the rows of organizations that do not exist, and return the others."""
        for place, stored in placed:
            if stored.organization_id in unknown:
                self.refuse(place, InvalidRecord("organizationId", "there is no such organization"))
        return [(place, stored) for place, stored in placed if stored.organization_id not in unknown]

    def has_organization(self, organization_id: int) -> bool:
        if organization_id not in self.organizations:
            self.organizations[organization_id] = self.find_organization(organization_id)
        return self.organizations[organization_id]

    def find_organization(self, organization_id: int) -> bool:
        if self.create_organizations:
            Organization.objects.get_or_create(id=organization_id, defaults={"name": f"Organization {organization_id}"})
            return True
        return Organization.objects.filter(id=organization_id).exists()

    def write(self, placed: list[Placed]) -> None:
        """Write rows, and name those that belong elsewhere; once a record was refused, the rest needs no writing."""
        rows = [stored for _, stored in placed]
        changed = 0
        if self.goes_on:
            changed = write(rows)
        else:
            stage(rows)
        self.imported.changed += changed
        if changed < len(rows):
            faults = misplaced()
            for place, stored in placed:
                if fault := faults.get(stored.id):
                    self.refuse(place, fault)

    def refuse(self, place: Place, error: InvalidRecord) -> None:
        self.imported.refused += 1
        self.on_refused(place, error)
