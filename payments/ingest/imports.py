"""An import: all sources in one transaction."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from django.db import Error, connection, transaction

from payments.ingest.background import background_writer
from payments.ingest.batches import Batch, LocatedRow, divide_into_rounds, read_batches
from payments.ingest.change_log import ChangeLog
from payments.ingest.errors import InvalidRecord
from payments.ingest.formats.sources import Location, Source, UnreadableSource
from payments.ingest.recording import ImportRecord, Origin, recorded_import
from payments.ingest.staging import DRY_RUN_TABLE, Target, find_conflicts, prepare_transaction, stage
from payments.ingest.stored_rows import StoredRow
from payments.ingest.validation import STRICT, Options
from payments.ingest.writing import ImportResult, update_statistics, write_rows
from payments.models import Access, ImportWay, Organization
from payments.runtime.database_errors import is_conflict
from payments.runtime.hooks import Hooks
from payments.runtime.process import process

# An import without `keep_going` stops after this many refused records: the file probably has another format.
REFUSED_MAX = 100


# The error does not repeat the ID: it may be a card number.
MISSING_ORGANIZATION = InvalidRecord.of(
    "organizationId", "this organization does not exist; --create-organizations creates it"
)


FOREIGN = {
    "organization_id": InvalidRecord.of("organizationId", "the API key belongs to another organization"),
    "mode": InvalidRecord.of("mode", "the API key belongs to the other mode"),
}


class OutcomeUnknown(Exception):
    """The import was interrupted during the commit: either everything was written or nothing."""


def import_payments(  # noqa: PLR0913  options of the command
    sources: Sequence[Source],
    *,
    on_refused: Callable[[Location, InvalidRecord], None],
    keep_going: bool = False,
    create_organizations: bool = False,
    waits_for_writers: bool = False,
    dry_run: bool = False,
    options: Options = STRICT,
    origin: Origin | None = None,
) -> ImportResult:
    """Insert new payments and update changed ones from records in the API's form.

    `on_refused` is called for each refused record; on PostgreSQL, by another thread. If a record is refused, nothing is
    written. With `keep_going`, the other records are written. A payment's organization must exist. With
    `create_organizations`, missing ones are created. With `waits_for_writers`, it writes while no other transaction
    writes payments, so it cannot end by a deadlock; a distributed table has no such lock. With `dry_run`, return
    the result of an import, but write nothing. `origin` is a command by default.

    :raises OutcomeUnknown: if the import is interrupted during the commit; after other exceptions, nothing is written
    """
    result = ImportResult()
    hooks = Hooks() if dry_run else process.hooks  # metrics do not count a dry run
    # On SQLite, a transaction would keep other connections from writing. Its temporary tables need none.
    has_transaction = connection.vendor != "sqlite" or not dry_run
    origin = origin or Origin()
    with hooks.importing(result), recorded_import(sources, result, origin, dry_run=dry_run) as record:
        with all_or_nothing() if has_transaction else nullcontext():
            origin.begin()
            target = prepare_transaction(waits_for_writers=waits_for_writers, dry_run=dry_run)
            run = Import(
                on_refused,
                target,
                hooks,
                record,
                access=origin.access,
                keep_going=keep_going,
                create_organizations=create_organizations,
            )
            # The deadline of a request is one of its thread.
            with background_writer(run.write_batch, has_thread=origin.way == ImportWay.COMMAND) as submit:
                for batch in read_batches(sources, options):
                    submit(batch)
                    if run.is_stopped:
                        break
            if run.will_commit and not dry_run:
                update_statistics(target, changed=result.written)
                run.log.record()
                record.succeed(run.log.written)
            elif has_transaction:
                transaction.set_rollback(True)
        if not run.will_commit:
            record.fail()
    return result


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Commit everything that the block writes, or nothing.

    :raises OutcomeUnknown: if the commit is interrupted
    """
    is_committing = False
    try:
        with transaction.atomic():
            yield
            is_committing = not transaction.get_rollback()
    except (KeyboardInterrupt, Error) as error:
        if is_committing and not is_conflict(error):
            raise OutcomeUnknown from error
        raise


@dataclass
class Import:
    """A running import: its options and its progress."""

    on_refused: Callable[[Location, InvalidRecord], None]
    target: Target
    hooks: Hooks
    record: ImportRecord
    access: Access | None
    keep_going: bool
    create_organizations: bool
    organizations: dict[int, bool] = field(default_factory=dict)  # whether they exist, by their IDs

    def __post_init__(self) -> None:
        self.result = self.record.result
        self.log = ChangeLog(self.record.import_id)

    @property
    def will_commit(self) -> bool:
        return self.keep_going or not self.result.refused

    @property
    def is_stopped(self) -> bool:
        return not self.keep_going and self.result.refused >= REFUSED_MAX

    def write_batch(self, batch: Batch) -> None:
        """Report the errors of a batch and write its valid rows.

        :raises DeadlineExceeded: the request has no time left
        """
        process.deadline.check()
        if self.is_stopped:
            return
        written_before = self.result.written
        for rows in self.check_batch(batch):
            self.write(rows)
        if self.result.written > written_before:
            self.log.add_days(batch.days)
        self.hooks.import_progressed(self.result)

    def check_batch(self, batch: Batch) -> list[list[LocatedRow]]:
        """Count the records of a batch and report its errors. Return the valid rows in rounds."""
        self.result.ignored += batch.ignored
        self.result.not_cards += batch.not_cards
        self.record.accesses |= {self.access} if self.access else batch.days.keys()
        missing = self.missing_organizations(batch.organization_ids)
        has_others = self.access is not None and batch.days.keys() - {self.access}
        if not (batch.has_errors or missing or has_others):
            self.result.read += len(batch.entries)
            return batch.rounds
        rows: list[LocatedRow] = []
        for location, content in batch.entries:
            self.result.read += not isinstance(content, UnreadableSource)
            if isinstance(content, InvalidRecord):
                self.refuse(location, content)
            elif isinstance(content, UnreadableSource):
                self.refuse(location, InvalidRecord.of(None, content.reason))
            elif foreign := self.find_foreign(content):
                self.refuse(location, FOREIGN[foreign])
            elif content.organization_id in missing:
                self.refuse(location, MISSING_ORGANIZATION)
            else:
                rows.append((location, content))
            if self.is_stopped:
                return []
        return list(divide_into_rounds(rows))

    def find_foreign(self, row: StoredRow) -> str | None:
        """Return the column in which a row differs from the only access whose payments are imported."""
        only = self.access._asdict() if self.access else {}
        return next((column for column, value in only.items() if getattr(row, column) != value), None)

    def missing_organizations(self, organization_ids: set[int]) -> set[int]:
        """Return the organizations that do not exist. With `create_organizations`, create them instead."""
        # In order: concurrent imports that create the same organizations would otherwise deadlock.
        for number in sorted(organization_ids - self.organizations.keys()):
            if self.create_organizations and self.target.table != DRY_RUN_TABLE:
                Organization.objects.get_or_create(id=number, defaults={"name": f"Organization {number}"})
            exists = self.create_organizations or Organization.objects.filter(id=number).exists()
            self.organizations[number] = exists
        missing = {number for number in organization_ids if not self.organizations[number]}
        self.result.organization_ids |= organization_ids - missing
        return missing

    def write(self, located_rows: list[LocatedRow]) -> None:
        """Write rows, and refuse rows whose payment is stored with another organization, mode or creation time.

        After a refused record, the transaction will be rolled back. The rows are only staged then, to find the errors.
        """
        rows = [row for _, row in located_rows]
        if self.will_commit:
            conflicts = write_rows(rows, target=self.target, log=self.log, result=self.result)
        else:
            stage(rows, self.log.assign(rows), target=self.target)
            conflicts = find_conflicts(rows, target=self.target)
        for location, row in located_rows:
            if row.id in conflicts and not self.is_stopped:
                self.refuse(location, conflicts[row.id])

    def refuse(self, location: Location, error: InvalidRecord) -> None:
        self.result.refused += 1
        self.record.note(location, error)
        self.on_refused(location, error)
