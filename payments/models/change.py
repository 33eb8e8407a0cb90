"""The changes of payments, numbered in the order in which their transactions commit."""

import secrets

from django.db import models
from django.db.models import Q
from django.utils import timezone

from payments.models.choices import Mode
from payments.models.identifiers import CHANGE_RANDOM_BITS, make_change_id
from payments.models.organization import Organization

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
        constraints = [models.CheckConstraint(name="change_mode_known", condition=Q(mode__in=Mode.values))]

    def __str__(self) -> str:
        return f"{self.organization_id} ({self.mode}): {self.number}"
