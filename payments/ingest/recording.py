"""The record of an import for staff: an `ImportRun` and its parts. A dry run has none.

A success is written in the import's transaction, so it is recorded exactly if the payments are committed. A failure is
written after the transaction. A killed process leaves the run as "Running or interrupted".
"""

import getpass
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import PurePath

from django.db import Error, close_old_connections, connection, transaction
from django.utils import timezone
from django.utils.text import Truncator
from msgspec.structs import replace

from payments.database.limits import changed_settings
from payments.ingest.errors import InvalidRecord
from payments.ingest.formats.sources import Location, Source
from payments.ingest.writing import ImportResult
from payments.models import Access, ImportOutcome, ImportPart, ImportRun, ImportTimes, ImportWay
from payments.models.history import ACTOR_CHARACTERS_MAX, SOURCE_CHARACTERS_MAX

RUNS_AGE_MAX = timedelta(days=90)
LINES_MAX = 10
PARTS_BATCH = 1000


def user_of_machine() -> str:
    """Return `user@host`. In a container, the user may have no name."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"


def nothing() -> None:
    """Do nothing before an import."""


@dataclass(frozen=True)
class Origin:
    """Where records come from: by which way and from whom, as staff see it. By default, the user and the machine.

    `access` is the only organization and mode whose payments are imported. The transaction begins with `begin`.
    """

    way: ImportWay = ImportWay.COMMAND
    actor: str = field(default_factory=user_of_machine)
    access: Access | None = None
    begin: Callable[[], None] = nothing


@dataclass
class ImportRecord:
    """What staff will see of an import. A dry run has no row."""

    result: ImportResult
    run: ImportRun | None
    accesses: set[Access] = field(default_factory=set)  # of all records that have the form of a payment
    lines: list[str] = field(default_factory=list)

    @property
    def import_id(self) -> int:
        """Return the ID of the import; 0 in a dry run."""
        return self.run.pk if self.run else 0

    def note(self, location: Location, invalid: InvalidRecord) -> None:
        """Note the errors of a record, with the name of the file instead of its path."""
        if len(self.lines) < LINES_MAX:
            place = replace(location, source=PurePath(location.source).name)
            self.lines += [place.describe(error) for error in invalid.reported]

    def succeed(self, written: Mapping[Access, int]) -> None:
        """Write the end of an import that commits these numbers of payments, in its transaction."""
        self.end(ImportOutcome.PARTIAL if self.result.refused else ImportOutcome.SUCCEEDED, written)
        if self.run:
            existing = {access for access in self.accesses if access.organization_id in self.result.organization_ids}
            ImportTimes.objects.record(existing, way=ImportWay(self.run.way), started_at=self.run.started_at)

    def fail(self, *lines: str) -> None:
        """Write the end of an import that has written nothing. If that fails, the import still reports its own error.

        An import that was interrupted during its commit may have been recorded as a success; then this changes nothing.
        """
        self.result.undo()
        if not self.import_id:
            return
        self.lines[:0] = lines
        with suppress(Error, KeyboardInterrupt):
            if not connection.in_atomic_block:
                close_old_connections()  # the import may have failed because its connection was lost
            with short_transaction():
                self.end(ImportOutcome.FAILED, {})

    def end(self, outcome: ImportOutcome, written: Mapping[Access, int]) -> None:
        counts = {name: getattr(self.result, name) for name in ("read", "refused", "created", "changed", "unchanged")}
        values = {"outcome": outcome, "ended_at": timezone.now(), "errors": self.lines[:LINES_MAX], **counts}
        if ImportRun.objects.filter(id=self.import_id, outcome=ImportOutcome.RUNNING).update(**values):
            parts = (
                ImportPart(run_id=self.import_id, **access._asdict(), written=written.get(access, 0))
                for access in sorted(self.accesses)
            )
            ImportPart.objects.bulk_create(parts, batch_size=PARTS_BATCH)


class NotBegun(Exception):
    """Another import must end first. Staff do not see this one."""


@contextmanager
def recorded_import(
    sources: Iterable[Source], result: ImportResult, origin: Origin, *, dry_run: bool
) -> Iterator[ImportRecord]:
    """Write that an import begins, and that it fails if the block raises. Delete the runs of 90 days ago."""
    record = ImportRecord(result, None if dry_run else begin(sources, origin))
    try:
        yield record
    except NotBegun:
        ImportRun.objects.filter(id=record.import_id).delete()
        raise
    except BaseException as error:
        record.fail(failure_line(error))
        raise


def begin(sources: Iterable[Source], origin: Origin) -> ImportRun:
    """Return a new run."""
    now = timezone.now()
    names = ", ".join(PurePath(source.name).name for source in sources)
    source, actor = Truncator(names).chars(SOURCE_CHARACTERS_MAX), Truncator(origin.actor).chars(ACTOR_CHARACTERS_MAX)
    with short_transaction():
        ImportRun.objects.filter(started_at__lt=now - RUNS_AGE_MAX).delete()
        return ImportRun.objects.create(started_at=now, way=origin.way, source=source, actor=actor)


def short_transaction() -> AbstractContextManager[None]:
    """Return a transaction that does not wait for PostgreSQL's disk or standby, as the commit of payments does."""
    if connection.vendor == "postgresql":
        return changed_settings({"synchronous_commit": "off"})
    return transaction.atomic()


def failure_line(error: BaseException) -> str:
    """Return why an import failed. The text of an exception may contain values of a record, so it is left out."""
    if isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt):
        return "Interrupted. Nothing was changed."
    cause = error.__cause__ or error
    kind = "The database failed" if isinstance(error, Error) else "The import failed"
    return f"{kind}, and nothing was changed: {type(cause).__name__}. Its output or the log has the details."
