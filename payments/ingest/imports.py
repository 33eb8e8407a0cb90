"""An import from end to end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import psycopg
from django.db import DEFAULT_DB_ALIAS, Error, connection, connections, transaction

from payments.changes import note_changes
from payments.ingest.columns import StoredRow, days, row
from payments.ingest.fast_path import usual
from payments.ingest.reading import Place, Source, Unreadable, read
from payments.ingest.validation import InvalidRecord, checked
from payments.ingest.writing import Key, misplaced, prepare, stage, write
from payments.models import Organization
from payments.runtime import hooks
from payments.totals import PlacedDay

BATCH_RECORDS = 5000
BATCH_BYTES = 2**24

# How long the thread that has an answer from the server waits for the one that reads; Python's own 5 ms add up.
SWITCH_SECONDS = 0.0005

# A file of another kind altogether is not read to its end.
REFUSED_MAX = 100

# What is at a place: a record's row, or what is wrong there.
Found: TypeAlias = tuple[Place, StoredRow | InvalidRecord | Unreadable]
Placed: TypeAlias = tuple[Place, StoredRow]


@dataclass
class Batch:
    """What was found in a piece of the sources, made ready to be written."""

    found: list[Found]
    rounds: list[list[Placed]]  # all rows; in each round a payment is there once
    days: set[PlacedDay]  # of all rows

    @property
    def organization_ids(self) -> set[int]:
        return {organization_id for organization_id, _, _ in self.days}

    @property
    def has_faults(self) -> bool:
        return sum(map(len, self.rounds)) < len(self.found)


class OutcomeUnknown(Exception):
    """The transaction was being committed when it was cut off: all of it is written, or nothing is."""


@dataclass
class Imported:
    """How many records were read, how many of them refused, how many rows the others changed, and whose they are."""

    read: int = 0
    refused: int = 0
    changed: int = 0
    organization_ids: set[int] = field(default_factory=set, compare=False)


def import_payments(
    sources: Iterable[Source],
    *,
    on_refused: Callable[[Place, InvalidRecord], None],
    keep_going: bool = False,
    create_organizations: bool = False,
) -> Imported:
    """Load records of the API's own form: a payment that is new is added, one that changed is updated.

    Where a record is refused, `on_refused` is told, on PostgreSQL by another thread. Then nothing at all is written;
    with `keep_going`, the others are.
    A payment's organization must exist; with `create_organizations`, one that does not is made.

    :raises OutcomeUnknown: where it was cut off at its very end; before that, nothing is written
    """
    imported = Imported()
    with hooks.importing(imported), all_or_nothing():
        run = Import(
            on_refused, prepare(), keep_going=keep_going, create_organizations=create_organizations, imported=imported
        )
        with taker(run) as take:
            for batch in batches(sources):
                take(batch)
                if run.gives_up:
                    break
        if run.goes_on:
            note_changes(run.changed_days)
        else:
            transaction.set_rollback(True)
            run.imported.changed = 0
    return imported


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Write all that a block writes, or nothing of it.

    :raises OutcomeUnknown: where it was cut off while the database committed
    """
    is_committing = False
    try:
        with transaction.atomic():
            yield
            is_committing = not transaction.get_rollback()
    except (KeyboardInterrupt, Error) as error:
        if is_committing:
            raise OutcomeUnknown from error
        raise


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
            taken = being_taken = EMPTY
            under_way = thread.submit(run.take, EMPTY)

            def take(batch: Batch) -> None:
                nonlocal under_way, taken, being_taken
                taken = EMPTY  # freed now, while the server is at work: the thread would keep it waiting for that
                under_way.result()
                if not run.gives_up:
                    under_way = thread.submit(run.take, batch)
                    taken, being_taken = being_taken, batch

            try:
                yield take
                under_way.result()
            except BaseException:
                cancel(under_way, shared.connection)
                raise
    finally:
        sys.setswitchinterval(patience)
        shared.dec_thread_sharing()


def cancel(under_way: Future[None], server: psycopg.Connection[Any]) -> None:
    """Have the server give up what the thread waits for, be it a lock that somebody else holds for long."""
    while wait([under_way], timeout=0).not_done:
        with suppress(psycopg.OperationalError):  # where it cannot be told, the thread will find it gone
            server.cancel_safe()
        wait([under_way], timeout=1)


def batches(sources: Iterable[Source]) -> Iterator[Batch]:
    """Yield what was found, in pieces of bounded size."""
    found: list[Found] = []
    size = 0
    for each, length in findings(sources):
        found.append(each)
        size += length
        if len(found) == BATCH_RECORDS or size >= BATCH_BYTES:
            yield ready(found)
            found, size = [], 0
    yield ready(found)


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


def ready(found: list[Found]) -> Batch:
    rows = [(place, each) for place, each in found if isinstance(each, StoredRow)]
    return Batch(
        found,
        rounds=list(rounds(rows)),
        days=days(each for _, each in rows),
    )


def rounds(rows: list[Placed]) -> Iterator[list[Placed]]:
    """Yield the first row of each payment, then the second of each, and so on, until all were there."""
    while rows:
        once: dict[str, Placed] = {}
        again = [each for each in rows if once.setdefault(each[1].id, each) is not each]
        yield list(once.values())
        rows = again


EMPTY = ready([])


@dataclass
class Import:
    """One run: what it was told to do, and how far it has come."""

    on_refused: Callable[[Place, InvalidRecord], None]
    key: Key
    keep_going: bool
    create_organizations: bool
    imported: Imported = field(default_factory=Imported)
    organizations: dict[int, bool] = field(default_factory=dict)
    changed_days: set[PlacedDay] = field(default_factory=set)

    @property
    def goes_on(self) -> bool:
        return self.keep_going or not self.imported.refused

    @property
    def gives_up(self) -> bool:
        return not self.keep_going and self.imported.refused >= REFUSED_MAX

    def take(self, batch: Batch) -> None:
        """Name what is wrong with the records of a batch, and write the others."""
        # In order, for where they are made other imports may make some of them too.
        unknown = {each for each in sorted(batch.organization_ids) if not self.has_organization(each)}
        if unknown or batch.has_faults:
            to_write = rounds(list(self.right(batch.found, unknown)))
        else:
            self.imported.read += len(batch.found)
            to_write = iter(batch.rounds)
        changed_before = self.imported.changed
        for once in to_write:
            self.write(once)
        if self.imported.changed > changed_before:
            self.changed_days |= batch.days
        if batch.found:
            hooks.import_went_on(self.imported)

    def right(self, found: list[Found], unknown: set[int]) -> Iterator[Placed]:
        """Yield the rows whose organization is not unknown, and refuse all else, until that is too much."""
        for place, each in found:
            if isinstance(each, Unreadable):
                self.refuse(place, InvalidRecord(None, each.reason))
            else:
                self.imported.read += 1
                if isinstance(each, InvalidRecord):
                    self.refuse(place, each)
                elif each.organization_id in unknown:
                    self.refuse(place, InvalidRecord("organizationId", "there is no such organization"))
                else:
                    yield place, each
            if self.gives_up:
                return

    def has_organization(self, organization_id: int) -> bool:
        if organization_id not in self.organizations:
            self.organizations[organization_id] = self.find_organization(organization_id)
            if self.organizations[organization_id]:
                self.imported.organization_ids.add(organization_id)
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
            changed = write(rows, key=self.key)
        else:
            stage(rows)
        self.imported.changed += changed
        if changed < len(rows):
            faults = misplaced({stored.organization_id for stored in rows}, key=self.key)
            for place, stored in placed:
                if self.gives_up:
                    return
                if fault := faults.get(stored.id):
                    self.refuse(place, fault)

    def refuse(self, place: Place, error: InvalidRecord) -> None:
        self.imported.refused += 1
        self.on_refused(place, error)
