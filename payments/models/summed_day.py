"""Daily totals of payments, computed once and stored."""

from django.db import models
from django.db.models import Q

from payments.models.choices import Mode
from payments.models.organization import Organization


class SummedDay(models.Model):
    """The totals of the payments created on one day (UTC). An import deletes the rows of the days that it changes."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    mode = models.CharField(max_length=4, choices=Mode.choices)
    day = models.DateField()
    totals = models.JSONField()  # a list of `totals.Total`

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "mode", "day"], name="summed_day_once"),
            models.CheckConstraint(name="summed_day_mode_known", condition=Q(mode__in=Mode.values)),
        ]

    def __str__(self) -> str:
        return f"{self.day} ({self.mode})"
