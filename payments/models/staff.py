"""What the admin remembers for a user: sessions, choices, named filters, and which payments the user has read."""

from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models import Q

from payments.models.choices import Mode
from payments.models.payment import IDENTIFIER_MAX

NAME_CHARACTERS_MAX = 60
QUERY_CHARACTERS_MAX = 4000
USER_NAME_MAX = 150  # as in Django's model of users
FILTERS_MAX = 255
BATCH_READS = 1000


class StaffSession(AbstractBaseSession):
    """A session of the admin.

    A trigger deletes the sessions of a user who is deactivated or leaves the staff (payments/migrations/). Without the
    column, each session would have to be decoded to find those of a user.
    """

    user_id = models.CharField(max_length=IDENTIFIER_MAX, blank=True)  # empty before the login

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["user_id"], name="staff_session_user")]


class StaffPreferences(models.Model):
    """The choices that the admin remembers for a user."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+")
    # Not a foreign key: Citus would then manage this table and the table of users.
    organization_id = models.BigIntegerField(null=True)
    mode = models.CharField(max_length=4, choices=Mode.choices, db_default=Mode.LIVE, default=Mode.LIVE)
    columns = models.JSONField(null=True)  # a list of names; None: the default columns
    export_options = models.JSONField(null=True)  # the values of the form; None: the defaults

    class Meta:
        default_permissions = ()  # users change only their own
        constraints = [models.CheckConstraint(name="preferences_mode_known", condition=Q(mode__in=Mode.values))]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.organization_id} ({self.mode})"


class Role(models.TextChoices):
    """What a user may do. The value is the name of a group, which the migration creates with its permissions."""

    VIEWER = "Viewer", "Viewer: payments and exports"
    KEY_MANAGER = "Key manager", "Key manager: also API keys"
    ADMINISTRATOR = "Administrator", "Administrator: also users, organizations, imports, removal of personal data"

    @property
    def slug(self) -> str:
        """Return the name of the role in commands and claims: `key-manager`."""
        return self.value.lower().replace(" ", "-")


class StaffOrganization(models.Model):
    """An organization that a user may see. Users with the permission `all_organizations` need no rows.

    The database has no foreign key to the organization, for the same reason as for the preferences.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="staff_organizations", db_index=False
    )
    organization = models.ForeignKey(
        "payments.Organization", on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["user", "organization"], name="staff_organization_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.organization_id}"


class SavedFilter(models.Model):
    """A search of the payment list that a user has named.

    It applies to any organization and mode. With an organization, it is shared with all users who see this one.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    organization_id = models.BigIntegerField(null=True)  # None: only the user sees the filter
    name = models.CharField(max_length=NAME_CHARACTERS_MAX)
    query = models.CharField(max_length=QUERY_CHARACTERS_MAX)  # the fields of the list's form, as a query string

    class Meta:
        default_permissions = ()  # users change only their own
        constraints = [
            models.UniqueConstraint(
                fields=["user", "name"], name="saved_filter_name_once", condition=Q(organization_id__isnull=True)
            ),
            models.UniqueConstraint(
                fields=["organization_id", "name"],
                name="shared_filter_name_once",
                condition=Q(organization_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ReadKind(models.TextChoices):
    """What showed the payments."""

    PAYMENT = "payment", "Page of the payment"
    LIST = "list", "List"
    EXPORT = "export", "Export"


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
    """A response of the admin with payments: the page of one, a page of the list, or a part of an export.

    The row has no foreign keys. So it outlives the user, its insertion takes no locks on other rows, and on a Citus
    cluster its table stays an ordinary table of the coordinator, on which the admin runs. It has no values of filters,
    which can be personal data.
    """

    read_at = models.DateTimeField()
    user_id = models.CharField(max_length=IDENTIFIER_MAX)  # a number or, in some projects, a UUID
    user_name = models.CharField(max_length=USER_NAME_MAX)  # at the time of the read
    kind = models.CharField(max_length=7, choices=ReadKind.choices)
    organization_id = models.BigIntegerField()
    mode = models.CharField(max_length=4, choices=Mode.choices)
    filters = models.CharField(max_length=FILTERS_MAX, blank=True)  # their names, such as `search, status`
    count = models.PositiveIntegerField()  # of the payments
    first_id = models.CharField(max_length=IDENTIFIER_MAX, blank=True)  # in the order of the list
    last_id = models.CharField(max_length=IDENTIFIER_MAX, blank=True)
    oldest_at = models.DateTimeField(null=True)  # `created_at` of the oldest payment
    newest_at = models.DateTimeField(null=True)

    objects = PaymentReadQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "access log"
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["read_at"], name="payment_read_time"),
            models.Index(fields=["user_name", "id"], name="payment_read_user"),
        ]

    def __str__(self) -> str:
        return f"{self.count} payments by {self.user_name}"
