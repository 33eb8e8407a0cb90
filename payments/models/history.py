"""The history that staff see: imports, and the statuses that they gave existing payments."""

from typing import Self

from django.db import models
from django.db.models import Q

from payments.models.choices import ImportWay, Mode, Status
from payments.models.organization import Access, Organization
from payments.models.payment import IDENTIFIER_MAX

SOURCE_CHARACTERS_MAX = 255
ACTOR_CHARACTERS_MAX = 150


class ImportOutcome(models.TextChoices):
    """How an import ended."""

    RUNNING = "running", "Running or interrupted"
    SUCCEEDED = "succeeded", "Succeeded"
    PARTIAL = "partial", "Some records refused"
    FAILED = "failed", "Failed"


COMMITTED = (ImportOutcome.SUCCEEDED, ImportOutcome.PARTIAL)


class ImportPartQuerySet(models.QuerySet["ImportPart"]):
    """The parts of imports, with the imports."""

    def of(self, access: Access) -> Self:
        """Return the parts of an organization and mode, newest first. An import that still runs has none."""
        return self.filter(**access._asdict()).select_related("run").order_by("-run_id")


class ImportRun(models.Model):
    """An import. The row is written before the import's transaction and completed after it, so a failure leaves it.

    The number of an import is its ID. Rows are deleted after 90 days.
    """

    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    way = models.CharField(max_length=7, choices=ImportWay.choices, default=ImportWay.COMMAND)
    source = models.CharField(max_length=SOURCE_CHARACTERS_MAX)  # names of files, or the media type of a request
    actor = models.CharField(max_length=ACTOR_CHARACTERS_MAX)  # who or which machine, or the name of the API key
    outcome = models.CharField(max_length=9, choices=ImportOutcome.choices, default=ImportOutcome.RUNNING)
    read = models.PositiveIntegerField(default=0)  # records
    refused = models.PositiveIntegerField(default=0)  # records
    created = models.PositiveIntegerField(default=0)  # payments
    changed = models.PositiveIntegerField(default=0)
    unchanged = models.PositiveIntegerField(default=0)
    errors = models.JSONField(default=list)  # the first lines of the messages

    class Meta:
        verbose_name = "import"
        default_permissions = ("view",)
        indexes = [models.Index(fields=["started_at"], name="import_run_started")]
        constraints = [
            models.CheckConstraint(name="import_run_outcome_known", condition=Q(outcome__in=ImportOutcome.values)),
            models.CheckConstraint(name="import_run_way_known", condition=Q(way__in=ImportWay.values)),
        ]

    def __str__(self) -> str:
        return f"Import {self.pk}"


class ImportPart(models.Model):
    """The share of an organization and mode in an import. The organization may not exist: it is no foreign key."""

    run = models.ForeignKey(ImportRun, on_delete=models.CASCADE, related_name="parts", db_index=False)
    organization_id = models.BigIntegerField()
    mode = models.CharField(max_length=4, choices=Mode.choices)
    written = models.PositiveIntegerField(default=0)  # payments that were created or changed

    objects = ImportPartQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["organization_id", "mode", "run"], name="import_part_access")]
        constraints = [
            models.UniqueConstraint(fields=["run", "organization_id", "mode"], name="import_part_once"),
            models.CheckConstraint(name="import_part_mode_known", condition=Q(mode__in=Mode.values)),
        ]

    def __str__(self) -> str:
        return f"{self.run}: {self.organization_id} ({self.mode})"


class StatusChange(models.Model):
    """A status that an import gave an existing payment. The ID of the change contains the time (`change_time`).

    The primary key contains the organization, so that Citus can distribute the table together with the payments.
    """

    pk = models.CompositePrimaryKey("organization_id", "payment_id", "change_id")
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    payment_id = models.CharField(max_length=IDENTIFIER_MAX)
    change_id = models.BigIntegerField()
    status = models.CharField(max_length=10, choices=Status.choices)
    import_id = models.BigIntegerField()  # of the `ImportRun`, which may have been deleted

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(name="status_change_known", condition=Q(status__in=Status.values))]

    def __str__(self) -> str:
        return f"{self.payment_id}: {self.status}"
