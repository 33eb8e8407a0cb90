"""When the payments of an organization and mode were last imported, and when their next import is late."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import models
from django.db.models import Count, Max, Min, Q
from django.db.models.functions import Now
from django.utils import timezone

from payments.models.choices import ImportWay, Mode
from payments.models.organization import Access, Organization
from payments.models.recording import parts

SCHEDULE_DAYS = 14  # up to the day of the last import
DAYS_MIN = 3  # so that a few imports by hand, or the first day of a client, are no schedule
RECENT = timedelta(days=30)  # longer than an import can be late after the one before

LATE = Q(late_at__lt=Now())

KEY = ("organization", "mode")
CHANGED = ("command_at", "api_at", "late_at", "days")


class ImportTimesQuerySet(models.QuerySet["ImportTimes"]):
    """The times of organizations and modes."""

    def of(self, access: Access) -> Any:
        """Return the times of an organization and mode, with `is_late`; None if no import has succeeded yet."""
        return self.filter(**access._asdict()).annotate(is_late=LATE).first()

    def record(self, accesses: Collection[Access], *, way: ImportWay, started_at: datetime) -> None:
        """Record a successful import of these organizations and modes, at the end of its transaction.

        First, missing rows are inserted. Then all rows are locked. Both happen in the order of organization and mode,
        so imports do not deadlock, and each one sees the times of the one before.
        """
        rows = [ImportTimes(**access._asdict()) for access in sorted(accesses)]
        self.bulk_create(rows, ignore_conflicts=True)
        for part in parts(rows):
            locked = self.select_for_update().filter(pk__in=[row.pk for row in part]).order_by("pk")
            changed = [times.add(way, started_at) for times in locked]
            self.bulk_create(changed, update_conflicts=True, unique_fields=KEY, update_fields=CHANGED)

    def freshness(self) -> dict[str, Any]:
        """Return how many are late, and the oldest and newest time by each way, of imports in the last 30 days."""
        recent = {way: Q(**{f"{way}_at__gte": timezone.now() - RECENT}) for way in ImportWay}
        any_way = recent[ImportWay.COMMAND] | recent[ImportWay.API]
        edges = {
            f"{name}_{way}": function(f"{way}_at", filter=condition)
            for way, condition in recent.items()
            for name, function in (("oldest", Min), ("newest", Max))
        }
        return self.aggregate(late=Count("mode", filter=LATE & any_way), **edges)


class ImportTimes(models.Model):
    """The beginnings of the last successful imports of an organization and mode, and the gaps between them.

    There may be an import each second, so pages and metrics read this row instead of the `ImportRun` rows.
    """

    pk = models.CompositePrimaryKey("organization_id", "mode")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    mode = models.CharField(max_length=4, choices=Mode.choices)
    command_at = models.DateTimeField(null=True)
    api_at = models.DateTimeField(null=True)
    # Twice the longest gap after the last import; null: there are too few days for a schedule.
    late_at = models.DateTimeField(null=True)
    # For each UTC day on which gaps ended: the day's ordinal, and the longest gap in seconds.
    days = models.JSONField(default=list)

    objects = ImportTimesQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(name="import_times_mode_known", condition=Q(mode__in=Mode.values))]

    def __str__(self) -> str:
        return f"{self.organization_id} ({self.mode})"

    @property
    def by_way(self) -> dict[ImportWay, datetime]:
        """Return the times of the ways by which payments were imported."""
        times = {ImportWay.COMMAND: self.command_at, ImportWay.API: self.api_at}
        return {way: time for way, time in times.items() if time}

    @property
    def last_at(self) -> datetime | None:
        return max(self.by_way.values(), default=None)

    @property
    def longest_gap(self) -> timedelta:
        return timedelta(seconds=max((longest for _, longest in self.days), default=0))

    def add(self, way: ImportWay, time: datetime) -> "ImportTimes":
        """Add an import. If another one that began later has ended before, there is no gap between them."""
        last_at = self.last_at
        setattr(self, f"{way}_at", max(time, self.by_way.get(way, time)))
        if last_at and time > last_at:
            self.add_gap(time - last_at, day=time.astimezone(UTC).toordinal())
            self.late_at = time + 2 * self.longest_gap if len(self.days) >= DAYS_MIN else None
        return self

    def add_gap(self, gap: timedelta, *, day: int) -> None:
        """Add a gap that ended on a day, unless it is longer than a schedule. Forget the gaps of earlier schedules."""
        self.days = [entry for entry in self.days if entry[0] > day - SCHEDULE_DAYS]
        if gap > timedelta(days=SCHEDULE_DAYS):
            return
        _, longest = self.days.pop() if self.days and self.days[-1][0] == day else (day, 0)
        self.days.append((day, max(longest, gap.total_seconds())))
