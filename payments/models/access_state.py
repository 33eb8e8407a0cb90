"""The state of the payments of each organization and mode, their numbered changes, and their daily totals."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import NamedTuple, TypeAlias

from django.db import models
from django.db.models import Case, Expression, F, Q, When
from django.utils import timezone

from payments.models.choices import Mode
from payments.models.days import DayKind, days_around, days_of_utc_day
from payments.models.identifiers import CHANGE_RANDOM_BITS, make_change_id
from payments.models.organization import Access, Organization

# The UTC days of payments by their organization and mode.
Days: TypeAlias = dict[Access, set["UtcDay"]]

# A page of the change feed reads and sorts all payments of a change, even if it starts in the middle of them.
CHANGE_PAYMENTS_MAX = 250


def new_change_id() -> int:
    """Return an ID for a change that is made now."""
    return make_change_id(timezone.now(), secrets.randbits(CHANGE_RANDOM_BITS))


class Change(models.Model):
    """Payments of an organization and mode that one transaction has written, at most `CHANGE_PAYMENTS_MAX`.

    A payment contains the ID of its last change. A transaction gives its changes their numbers at its end, while it
    holds the lock of the `AccessState`. Therefore the numbers of an organization and mode have no gaps, and become
    visible in their order, however long a transaction takes.

    Changes are never deleted: a client may know the newest one of any moment.
    """

    pk = models.CompositePrimaryKey("organization_id", "mode", "number")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="changes", db_index=False)
    mode = models.CharField(max_length=4, choices=Mode.choices)
    number = models.BigIntegerField()  # from 1
    change_id = models.BigIntegerField()

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(name="change_mode_known", condition=Q(mode__in=Mode.values))]

    def __str__(self) -> str:
        return f"{self.organization_id} ({self.mode}): {self.number}"


class UtcDay(NamedTuple):
    """A UTC day on which payments were created or paid."""

    kind: DayKind
    day: date


class AccessStateQuerySet(models.QuerySet["AccessState"]):
    """States, which transactions lock in the order of organization and mode, so that they do not deadlock.

    Each statement names one organization and mode: Citus sends it to one shard.
    """

    def record(
        self,
        changes: Mapping[Access, Sequence[int]],
        *,
        days: Mapping[Access, Collection[UtcDay]],
    ) -> None:
        """Number the changes of this transaction, renew the revisions, and lock the rows. Create missing rows.

        `changes` has the IDs of the changes of each organization and mode, at least one. `days` has the days of the
        changed payments, before and after the change: their totals are deleted. The transaction should end soon,
        because it holds locks.
        """
        for access in sorted(changes):
            state = self.lock(access)
            # In a later statement than the lock, so that it sees what the previous holder has committed.
            values = state.append(changes[access], using=self.db)
            self.filter(organization_id=access.organization_id, mode=access.mode).update(**values)
            delete_totals(access, days.get(access, ()), using=self.db)

    def lock(self, access: Access) -> "AccessState":
        """Lock the row of an organization and mode, and return it. Create it if it is missing."""
        state, _ = self.select_for_update().get_or_create(organization_id=access.organization_id, mode=access.mode)
        return state


class AccessState(models.Model):
    """The state of the payments of an organization and mode.

    Each transaction that changes these payments locks the row and renews the revision. Therefore the transactions
    commit one after the other, and a revision identifies one state of the payments. The row is created when it is first
    needed. A missing row means that the payments have never changed, as the revision 0 does.

    The revision is the ID of the newest change. SQL that changes payments renews the revision alone
    (docs/reliability.md). The order of its changes is unknown, so a new epoch begins: clients of the change feed must
    start again.

    The primary key contains the organization, so that Citus can distribute the table together with the payments.
    """

    pk = models.CompositePrimaryKey("organization_id", "mode")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    mode = models.CharField(max_length=4, choices=Mode.choices)
    revision = models.BigIntegerField(db_default=0)
    change_number = models.BigIntegerField(db_default=0)  # of the newest numbered change; 0: there is none
    # The ID of the newest numbered change, or the first revision of the epoch.
    change_id = models.BigIntegerField(db_default=0)
    epoch = models.BigIntegerField(db_default=0)  # its first revision, until the revision is renewed alone

    objects = AccessStateQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(name="access_state_mode_known", condition=Q(mode__in=Mode.values))]

    def __str__(self) -> str:
        return f"{self.organization_id} ({self.mode})"

    @property
    def current_epoch(self) -> int:
        return self.epoch if self.revision == self.change_id else self.revision

    def append(self, change_ids: Sequence[int], *, using: str) -> dict[str, int]:
        """Number these changes, and return the new values of the row, which must be locked."""
        first = self.change_number + 1
        Change.objects.using(using).bulk_create(
            Change(organization_id=self.organization_id, mode=self.mode, number=number, change_id=change_id)
            for number, change_id in enumerate(change_ids, start=first)
        )
        return {
            "revision": change_ids[-1],
            "change_id": change_ids[-1],
            "change_number": self.change_number + len(change_ids),
            "epoch": self.current_epoch,
        }


class SummedDay(models.Model):
    """The totals of the payments that were created or paid on a day of a time zone.

    A write of payments deletes the rows of the days that it changes (`AccessStateQuerySet.record`).
    """

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    mode = models.CharField(max_length=4, choices=Mode.choices)
    kind = models.CharField(max_length=7, choices=DayKind.choices)
    time_zone = models.CharField(max_length=64)
    day = models.DateField()
    totals = models.JSONField()  # a list of `totals.Total`

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["organization", "mode", "kind", "day"], name="summed_day_once"),
            models.CheckConstraint(name="summed_day_mode_known", condition=Q(mode__in=Mode.values)),
            models.CheckConstraint(name="summed_day_kind_known", condition=Q(kind__in=DayKind.values)),
        ]

    def __str__(self) -> str:
        return f"{self.day} ({self.mode}, {self.kind})"


def delete_totals(access: Access, utc_days: Collection[UtcDay], *, using: str) -> None:
    """Delete the totals of the days with payments of these UTC days. The state must be locked.

    A transaction that sums days locks the state first. So it sums before this lock, or sees the time zone and all
    payments that this transaction sees.
    """
    totals = SummedDay.objects.using(using).filter(organization_id=access.organization_id, mode=access.mode)
    organization = Organization.objects.using(using).filter(id=access.organization_id).first()
    if organization is None:  # the transaction cannot commit
        return
    zone = organization.zone
    for kind in DayKind:
        of_kind = [utc_day.day for utc_day in utc_days if utc_day.kind == kind]
        days = {day for utc_day in of_kind for day in days_of_utc_day(utc_day, zone)}
        # The organization may get a former time zone again: its days differ from UTC by less than a day.
        near = {day for utc_day in of_kind for day in days_around(utc_day)}
        of_zone = Q(time_zone=zone.key)
        if days:
            totals.filter(Q(of_zone, day__in=days) | Q(~of_zone, day__in=near), kind=kind).delete()


def current_epoch() -> Expression:
    """Return the SQL expression of `AccessState.current_epoch`."""
    return Case(When(revision=F("change_id"), then=F("epoch")), default=F("revision"))
