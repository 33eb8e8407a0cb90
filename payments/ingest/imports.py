"""An import: all sources in one transaction."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import Error, transaction

from payments.ingest.background import background_writer
from payments.ingest.batches import Batch, Entry, LocatedError, LocatedRow, divide_into_rounds, read_batches
from payments.ingest.change_log import ChangeLog
from payments.ingest.errors import InvalidRecord
from payments.ingest.formats.sources import Location, Source
from payments.ingest.stored_rows import StoredRow
from payments.ingest.validation import STRICT, Options
from payments.ingest.writing import (
    PrimaryKey,
    fetch_primary_key,
    find_conflicts,
    prepare_transaction,
    stage,
    update_statistics,
    write_rows,
)
from payments.models import Organization
from payments.runtime.database_errors import is_conflict
from payments.runtime.process import process
from payments.totals import OrganizationDay

# An import without `keep_going` stops after this many refused records: the file probably has another format.
REFUSED_MAX = 100


# The error does not repeat the ID: it may be a card number.
MISSING_ORGANIZATION = InvalidRecord.of(
    "organizationId", "this organization does not exist; --create-organizations creates it"
)


class OutcomeUnknown(Exception):
    """The import was interrupted during the commit: either everything was written or nothing."""


@dataclass
class ImportResult:
    """The counts of an import, and the organizations of its payments."""

    read: int = 0  # records
    refused: int = 0  # records
    changed: int = 0  # payments
    ignored: int = 0  # unknown fields that were skipped
    organization_ids: set[int] = field(default_factory=set, compare=False)


def import_payments(  # noqa: PLR0913  options of the command
    sources: Iterable[Source],
    *,
    on_refused: Callable[[Location, InvalidRecord], None],
    keep_going: bool = False,
    create_organizations: bool = False,
    waits_for_writers: bool = False,
    options: Options = STRICT,
) -> ImportResult:
    """Insert new payments and update changed ones from records in the API's form.

    `on_refused` is called for each refused record; on PostgreSQL, by another thread. If a record is refused, nothing is
    written. With `keep_going`, the other records are written. A payment's organization must exist. With
    `create_organizations`, missing ones are created. With `waits_for_writers`, it writes while no other transaction
    writes payments, so it cannot end by a deadlock; a distributed table has no such lock.

    :raises OutcomeUnknown: if the import is interrupted during the commit; after other exceptions, nothing is written
    """
    result = ImportResult()
    with process.hooks.importing(result), all_or_nothing():
        key = fetch_primary_key()
        prepare_transaction(key=key, waits_for_writers=waits_for_writers)
        run = Import(on_refused, key, keep_going=keep_going, create_organizations=create_organizations, result=result)
        with background_writer(run.write_batch) as submit:
            for batch in read_batches(sources, options):
                submit(batch)
                if run.is_stopped:
                    break
        if run.will_commit:
            update_statistics(key, changed=result.changed)
            run.log.record(run.changed_days, is_import=True)
        else:
            transaction.set_rollback(True)
            result.changed = 0
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
    key: PrimaryKey
    keep_going: bool
    create_organizations: bool
    result: ImportResult
    organizations: dict[int, bool] = field(default_factory=dict)  # whether they exist, by their IDs
    log: ChangeLog = field(default_factory=ChangeLog)
    changed_days: set[OrganizationDay] = field(default_factory=set)

    @property
    def will_commit(self) -> bool:
        return self.keep_going or not self.result.refused

    @property
    def is_stopped(self) -> bool:
        return not self.keep_going and self.result.refused >= REFUSED_MAX

    def write_batch(self, batch: Batch) -> None:
        """Report the errors of a batch and write its valid rows."""
        if self.is_stopped:
            return
        changed_before = self.result.changed
        for rows in self.check_batch(batch):
            self.write(rows)
        if self.result.changed > changed_before:
            self.changed_days |= batch.days
        process.hooks.import_progressed(self.result)

    def check_batch(self, batch: Batch) -> list[list[LocatedRow]]:
        """Count the records of a batch and report its errors. Return the valid rows in rounds."""
        self.result.ignored += batch.ignored
        missing = self.missing_organizations(batch.organization_ids)
        if not (batch.has_errors or missing):
            self.result.read += len(batch.entries)
            return batch.rounds
        errors_left = None if self.keep_going else REFUSED_MAX - self.result.refused
        rows, errors = partition(batch.entries, missing, errors_max=errors_left)
        self.report(rows, errors)
        return [] if self.is_stopped else list(divide_into_rounds(rows))

    def report(self, rows: list[LocatedRow], errors: list[LocatedError]) -> None:
        self.result.read += len(rows)
        for location, error in errors:
            if isinstance(error, InvalidRecord):
                self.result.read += 1
                self.refuse(location, error)
            else:
                self.refuse(location, InvalidRecord.of(None, error.reason))

    def missing_organizations(self, organization_ids: set[int]) -> set[int]:
        # In order: concurrent imports that create the same organizations would otherwise deadlock.
        return {each for each in sorted(organization_ids) if not self.ensure_organization(each)}

    def ensure_organization(self, organization_id: int) -> bool:
        """Return whether an organization exists. With `create_organizations`, create it if it is missing."""
        if organization_id not in self.organizations:
            if self.create_organizations:
                name = f"Organization {organization_id}"
                Organization.objects.get_or_create(id=organization_id, defaults={"name": name})
            exists = self.create_organizations or Organization.objects.filter(id=organization_id).exists()
            self.organizations[organization_id] = exists
            if exists:
                self.result.organization_ids.add(organization_id)
        return self.organizations[organization_id]

    def write(self, located_rows: list[LocatedRow]) -> None:
        """Write rows, and refuse rows whose payment is stored with another organization, mode or creation time.

        After a refused record, the transaction will be rolled back. The rows are only staged then, to find the errors.
        """
        rows = [row for _, row in located_rows]
        if self.will_commit:
            changed = write_rows(rows, key=self.key, log=self.log)
        else:
            changed = 0
            stage(rows, self.log.assign(rows))
        self.result.changed += changed
        if changed < len(rows):
            self.refuse_conflicts(located_rows)

    def refuse_conflicts(self, located_rows: list[LocatedRow]) -> None:
        errors = find_conflicts({row.organization_id for _, row in located_rows}, key=self.key)
        for location, row in located_rows:
            if self.is_stopped:
                return
            if error := errors.get(row.id):
                self.refuse(location, error)

    def refuse(self, location: Location, error: InvalidRecord) -> None:
        self.result.refused += 1
        self.on_refused(location, error)


def partition(
    entries: Iterable[Entry], missing_organizations: set[int], *, errors_max: int | None
) -> tuple[list[LocatedRow], list[LocatedError]]:
    """Return the valid rows and the errors of a batch, up to the error at which the import stops."""
    rows: list[LocatedRow] = []
    errors: list[LocatedError] = []
    for location, content in entries:
        if not isinstance(content, StoredRow):
            errors.append((location, content))
        elif content.organization_id in missing_organizations:
            errors.append((location, MISSING_ORGANIZATION))
        else:
            rows.append((location, content))
        if len(errors) == errors_max:
            break
    return rows, errors
