"""An import from end to end."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from django.db import transaction

from payments.ingest.checking import InvalidRecord, checked
from payments.ingest.reading import Place, Source, Text, Unreadable, read
from payments.ingest.writing import misplaced, write
from payments.models import Organization
from payments.records import Record

BATCH_RECORDS = 1000

# A file of another kind altogether is not read to its end.
REFUSED_MAX = 100

Placed = tuple[Place, Record]


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
        placed = run.accepted(sources)
        while batch := list(islice(placed, BATCH_RECORDS)):
            run.write(batch)
        if not run.goes_on:
            transaction.set_rollback(True)
            run.imported.changed = 0
    return run.imported


@dataclass
class Import:
    """One run: what it was told to do, and how far it has come."""

    on_refused: Callable[[Place, InvalidRecord], None]
    keep_going: bool
    create_organizations: bool
    imported: Imported = field(default_factory=Imported)
    organizations: set[str] = field(default_factory=set)

    @property
    def goes_on(self) -> bool:
        return self.keep_going or not self.imported.refused

    def accepted(self, sources: Iterable[Source]) -> Iterator[Placed]:
        """Yield the records that are right in themselves."""
        for text in self.texts(sources):
            self.imported.read += 1
            try:
                record = checked(text.json)
                self.check_organization(record)
            except InvalidRecord as error:
                self.refuse(text.place, error)
                if not self.keep_going and self.imported.refused >= REFUSED_MAX:
                    return
            else:
                yield text.place, record

    def texts(self, sources: Iterable[Source]) -> Iterator[Text]:
        for source in sources:
            try:
                yield from read(source)
            except Unreadable as error:
                self.refuse(error.place, InvalidRecord(None, error.reason))

    def check_organization(self, record: Record) -> None:
        if record.organization_id in self.organizations:
            return
        organization_id = int(record.organization_id)
        if self.create_organizations:
            Organization.objects.get_or_create(id=organization_id, defaults={"name": f"Organization {organization_id}"})
        elif not Organization.objects.filter(id=organization_id).exists():
            raise InvalidRecord("organizationId", "there is no such organization")
        self.organizations.add(record.organization_id)

    def write(self, batch: Sequence[Placed]) -> None:
        """Write a batch, and name what belongs elsewhere; once a record was refused, the others need no writing."""
        records = [record for _, record in batch]
        changed = write(records) if self.goes_on else 0
        self.imported.changed += changed
        if changed < len(records):
            for index, error in misplaced(records):
                self.refuse(batch[index][0], error)

    def refuse(self, place: Place, error: InvalidRecord) -> None:
        self.imported.refused += 1
        self.on_refused(place, error)
