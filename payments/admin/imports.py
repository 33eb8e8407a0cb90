"""The list of imports."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta, tzinfo
from typing import Any

from django.contrib import admin
from django.db.models import Count, Min, Q, QuerySet, Sum

from payments.admin.base import RecordListAdmin
from payments.admin.forms import RecordsForm
from payments.admin.scope import Scope
from payments.models import ImportPart, ImportRun, Organization


@dataclass(frozen=True)
class ImportRow:
    """An import, as a user sees it.

    Of an import that also has records of organizations that the user does not see, the row shows only how it ended and
    what it wrote of the others.
    """

    run: ImportRun
    organization: Organization | None  # the only one that the user sees; None for several, or for an unknown one
    organizations: int
    written: int
    is_shared: bool

    @property
    def zone(self) -> tzinfo:
        return self.organization.zone if self.organization else UTC

    @property
    def duration(self) -> str:
        if self.run.ended_at is None:
            return "-"
        seconds = (self.run.ended_at - self.run.started_at) / timedelta(seconds=1)
        minutes = int(seconds // 60)
        return f"{minutes} min {int(seconds % 60)} s" if minutes else f"{seconds:.1f} s"


def import_rows(runs: Sequence[ImportRun], scope: Scope) -> Iterator[ImportRow]:
    """Yield the rows of imports. Cost: two queries."""
    own = Q(id__isnull=False) if scope.ids is None else Q(organization_id__in=sorted(scope.ids))
    shares: Any = ImportPart.objects.filter(run_id__in=[run.pk for run in runs]).values("run_id")
    aggregates = {
        "parts": Count("id"),
        "own_parts": Count("id", filter=own),
        "organizations": Count("organization_id", filter=own, distinct=True),
        "first": Min("organization_id", filter=own),
        "own_written": Sum("written", filter=own),
    }
    by_run = {share["run_id"]: share for share in shares.annotate(**aggregates)}
    organizations = scope.organizations.in_bulk({share["first"] for share in by_run.values()})
    for run in runs:
        share = by_run.get(run.pk, dict.fromkeys(aggregates, 0))
        organization = organizations.get(share["first"]) if share["organizations"] == 1 else None
        is_shared = share["parts"] > share["own_parts"]
        yield ImportRow(run, organization, share["organizations"], share["own_written"], is_shared)


@admin.register(ImportRun)
class ImportRunAdmin(RecordListAdmin):
    """The list of imports."""

    page_title = "Imports"

    def get_records(self, form: RecordsForm) -> QuerySet[Any]:
        return form.scope.imports

    def get_rows(self, records: list[ImportRun], scope: Scope) -> list[ImportRow]:
        return list(import_rows(records, scope))
