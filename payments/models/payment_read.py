"""Records of staff who read the page of a payment: user, payment and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from payments.models.payment import IDENTIFIER_MAX

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

USER_NAME_MAX = 150  # as in Django's model of users

BATCH_READS = 1000


class PaymentReadQuerySet(models.QuerySet["PaymentRead"]):
    """Reads of payments, which are deleted only by age."""

    def delete_before(self, time: datetime, *, on_progress: Callable[[int], object]) -> int:
        """Delete the reads before a time, oldest first, and return their number. Each batch is a transaction."""
        reads = self.filter(read_at__lt=time).order_by("read_at")
        deleted = 0
        while ids := list(reads.values_list("pk", flat=True)[:BATCH_READS]):
            self.filter(pk__in=ids).delete()
            deleted += len(ids)
            on_progress(len(ids))
        return deleted


class PaymentRead(models.Model):
    """A view of a payment's page in the admin.

    The row has no foreign keys. So it outlives the user, its insertion takes no locks on other rows, and on a Citus
    cluster its table stays an ordinary table of the coordinator, on which the admin runs.
    """

    read_at = models.DateTimeField()
    user_id = models.CharField(max_length=IDENTIFIER_MAX)  # a number or, in some projects, a UUID
    user_name = models.CharField(max_length=USER_NAME_MAX)  # at the time of the read
    organization_id = models.BigIntegerField()
    payment_id = models.CharField(max_length=IDENTIFIER_MAX)

    objects = PaymentReadQuerySet.as_manager()

    class Meta:
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["read_at"], name="payment_read_time"),
            models.Index(fields=["user_name", "id"], name="payment_read_user"),
            models.Index(fields=["payment_id", "id"], name="payment_read_payment"),
        ]

    def __str__(self) -> str:
        return f"{self.payment_id} by {self.user_name}"
