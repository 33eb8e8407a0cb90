"""What the admin remembers for a user: sessions, choices, and named filters."""

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models import Q

from payments.models.choices import Mode
from payments.models.payment import IDENTIFIER_MAX

NAME_CHARACTERS_MAX = 60
QUERY_CHARACTERS_MAX = 4000


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


class SavedFilter(models.Model):
    """A search of the payment list that a user has named. It applies to any organization and mode."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=NAME_CHARACTERS_MAX)
    query = models.CharField(max_length=QUERY_CHARACTERS_MAX)  # the fields of the list's form, as a query string

    class Meta:
        default_permissions = ()  # users change only their own
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="saved_filter_name_once")]

    def __str__(self) -> str:
        return self.name
