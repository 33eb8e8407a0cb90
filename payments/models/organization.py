"""Organizations, which own payments and API keys."""

from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from payments.conf import conf
from payments.models.days import validate_time_zone

ORGANIZATION_ID_MAX = 2**63 - 1

# Names appear in lists with one line for each.
ONE_LINE = RegexValidator(r"\A[^\x00-\x1f\x7f]*\Z", "A name is one line of text.")


class Access(NamedTuple):
    """An organization and a mode, which define the visible payments."""

    organization_id: int
    mode: str

    def __str__(self) -> str:
        return f"organization {self.organization_id} ({self.mode})"


def default_time_zone() -> str:
    return conf.DEFAULT_TIME_ZONE


class Organization(models.Model):
    """The owner of payments. Its ID is the record's `organizationId`, so the operator chooses it.

    Totals and the admin use the days of its time zone.
    """

    id = models.PositiveBigIntegerField(
        primary_key=True, validators=[MinValueValidator(1), MaxValueValidator(ORGANIZATION_ID_MAX)]
    )
    name = models.CharField(max_length=200, validators=[ONE_LINE])
    time_zone = models.CharField(max_length=64, default=default_time_zone, validators=[validate_time_zone])

    class Meta:
        constraints = [models.CheckConstraint(name="organization_id_positive", condition=Q(id__gte=1))]
        default_permissions = ("add", "change", "view")
        permissions = [("all_organizations", "Can see all organizations")]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **options: Any) -> None:
        """Save the organization.

        :raises ValidationError: the time zone is unknown: no page could show its days
        """
        validate_time_zone(self.time_zone)
        super().save(*args, **options)

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.time_zone)
