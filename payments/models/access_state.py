"""The state of the payments of each organization and mode."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from payments.models.choices import Mode
from payments.models.organization import Access, Organization

if TYPE_CHECKING:
    from collections.abc import Collection

REVISION_BITS = 63


class AccessStateQuerySet(models.QuerySet["AccessState"]):
    """States, which transactions lock in the order of organization and mode, so that they do not deadlock.

    Each statement names one organization and mode: Citus sends it to one shard.
    """

    def renew(self, accesses: Collection[Access]) -> None:
        """Give the payments of these organizations and modes new revisions, and lock the rows. Create missing rows."""
        for organization_id, mode in sorted(accesses):
            # Random, not counted: a server that lost contact with the others could count to the same number.
            revision = secrets.randbits(REVISION_BITS)
            self.bulk_create(
                [AccessState(organization_id=organization_id, mode=mode, revision=revision)],
                update_conflicts=True,
                update_fields=["revision"],
                unique_fields=["organization", "mode"],
            )

    def lock(self, access: Access) -> None:
        """Lock the row of an organization and mode. Create it if it is missing."""
        self.select_for_update().get_or_create(organization_id=access.organization_id, mode=access.mode)


class AccessState(models.Model):
    """The state of the payments of an organization and mode.

    Each transaction that changes these payments locks the row and renews the revision. Therefore the transactions
    commit one after the other, and a revision identifies one state of the payments. The row is created when it is first
    needed. A missing row means that the payments have never changed, as the revision 0 does.

    The primary key contains the organization, so that Citus can distribute the table together with the payments.
    """

    pk = models.CompositePrimaryKey("organization_id", "mode")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    mode = models.CharField(max_length=4, choices=Mode.choices)
    revision = models.BigIntegerField(db_default=0)

    objects = AccessStateQuerySet.as_manager()

    class Meta:
        constraints = [models.CheckConstraint(name="access_state_mode_known", condition=Q(mode__in=Mode.values))]

    def __str__(self) -> str:
        return f"{self.organization_id} ({self.mode})"
