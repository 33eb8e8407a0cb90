"""What the start page says about the imports of an organization and mode: whether one failed, or is late."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.timesince import timesince

from payments.admin.scope import Scope
from payments.models import Access, ImportOutcome, ImportPart, ImportRun, ImportTimes
from payments.models.history import COMMITTED

FAILED_DAYS = timedelta(days=7)  # before the last import


@dataclass(frozen=True)
class Imports:
    """The last import, the last failed one that was not repeated, and the times of the last successful ones."""

    last: ImportRun | None
    failed: ImportRun | None
    times: ImportTimes | None

    @property
    def longest_gap(self) -> str:
        """Return the longest time between two imports in words; no text without an import."""
        last_at = self.times and self.times.last_at
        return timesince(last_at, last_at + self.times.longest_gap) if self.times and last_at else ""


def read_imports(access: Access, *, scope: Scope) -> Imports:
    """Return the state of the imports. Cost: three queries."""
    part = ImportPart.objects.of(access).first()
    last = part.run if part else None
    failed = failed_import(access, scope=scope, since=(last.started_at if last else timezone.now()) - FAILED_DAYS)
    return Imports(last, failed, ImportTimes.objects.of(access))


def failed_import(access: Access, *, scope: Scope, since: datetime) -> ImportRun | None:
    """Return the last import that failed, if none of the same source has succeeded after it.

    An import without any valid record has no organization. Users of all organizations see it.
    """
    of_access = Q(parts__organization_id=access.organization_id, parts__mode=access.mode)
    selected = of_access if scope.ids is not None else of_access | Q(parts=None)
    later = scope.imports.filter(of_access, source=OuterRef("source"), id__gt=OuterRef("id"), outcome__in=COMMITTED)
    failed = scope.imports.filter(selected, outcome=ImportOutcome.FAILED, started_at__gte=since)
    return failed.exclude(Exists(later)).first()
