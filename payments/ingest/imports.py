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

# What was found at a place: a record's row, or what is wrong.
Found: TypeAlias = tuple[Place, StoredRow | InvalidRecord | Unreadable]


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
def taker(run: Import) -> Iterator[Callable[[list[Found]], None]]:
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
            under_way = thread.submit(run.take, [])

            def take(batch: list[Found]) -> None:
                nonlocal under_way
                under_way.result()
                if not run.gives_up:
                    under_way = thread.submit(run.take, batch)

            yield take
            under_way.result()
    finally:
        sys.setswitchinterval(patience)
        shared.dec_thread_sharing()


def batches(sources: Iterable[Source]) -> Iterator[list[Found]]:
    """Yield what was found, in pieces of bounded size."""
    batch: list[Found] = []
    size = 0
    for found, length in findings(sources):
        batch.append(found)
        size += length
        if len(batch) == BATCH_RECORDS or size >= BATCH_BYTES:
            yield batch
            batch = []
            size = 0
    if batch:
        yield batch


def findings(sources: Iterable[Source]) -> Iterator[tuple[Found, int]]:
    """Yield what each record is, and how many bytes it has."""
    for source in sources:
        try:
            for place, text in read(source):
                try:
                    yield (place, usual(text) or row(checked(text))), len(text)
                except InvalidRecord as error:
                    yield (place, error), len(text)
        except Unreadable as error:
            yield (error.place, error), 0


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

    def take(self, batch: list[Found]) -> None:
        """Write the rows of a batch, and name what is wrong; once a record was refused, the rest needs no writing."""
        good: list[tuple[Place, StoredRow]] = []
        for place, found in batch:
            if isinstance(found, Unreadable):
                self.refuse(place, InvalidRecord(None, found.reason))
                continue
            self.imported.read += 1
            if isinstance(found, InvalidRecord):
                self.refuse(place, found)
            elif self.has_organization(found):
                good.append((place, found))
            else:
                self.refuse(place, InvalidRecord("organizationId", "there is no such organization"))
            if self.gives_up:
                break
        for once in rounds(good):
            self.write(once)

    def has_organization(self, row: StoredRow) -> bool:
        exists = self.organizations.get(row.organization_id)
        if exists is None:
            exists = self.organizations[row.organization_id] = self.find_organization(row.organization_id)
        return exists

    def find_organization(self, organization_id: int) -> bool:
        if self.create_organizations:
            Organization.objects.get_or_create(id=organization_id, defaults={"name": f"Organization {organization_id}"})
            return True
        return Organization.objects.filter(id=organization_id).exists()

    def write(self, placed: dict[str, tuple[Place, StoredRow]]) -> None:
        """Write rows, by their payments' ids, and name those that belong elsewhere."""
        rows = [row for _, row in placed.values()]
        changed = 0
        if self.goes_on:
            changed = write(rows)
        else:
            stage(rows)
        self.imported.changed += changed
        if changed < len(rows):
            faults = misplaced()
            for payment_id, (place, _) in placed.items():
                if fault := faults.get(payment_id):
                    self.refuse(place, fault)

    def refuse(self, place: Place, error: InvalidRecord) -> None:
        self.imported.refused += 1
        self.on_refused(place, error)


def rounds(placed: list[tuple[Place, StoredRow]]) -> Iterator[dict[str, tuple[Place, StoredRow]]]:
    """Yield the first row of each payment, then the second of each, and so on, until all were there."""
    while placed:
        once: dict[str, tuple[Place, StoredRow]] = {}
        again = [each for each in placed if once.setdefault(each[1].id, each) is not each]
        yield once
        placed = again
