"""API keys: each reads or imports one organization's payments in one mode."""

from datetime import datetime
from typing import Self
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.expressions import Combinable
from django.utils import timezone

from payments.models import identifiers
from payments.models.choices import KeyScope, Mode
from payments.models.organization import ONE_LINE, Access, Organization


class KeyState(models.TextChoices):
    """Whether a key can be used."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """API keys, selected by their state."""

    def issue(  # noqa: PLR0913  the values of a key
        self,
        organization: Organization,
        *,
        mode: str,
        name: str,
        scope: str = KeyScope.READ,
        expires_at: datetime | None = None,
        form_id: UUID | None = None,
    ) -> tuple["ApiKey", str]:
        """Create a key and return it with its text. The text is not stored, so it can be shown only now.

        :raises django.db.IntegrityError: if the form with this ID has already created a key
        """
        text = identifiers.new_key(mode)
        key = self.create(
            organization=organization,
            mode=mode,
            name=name,
            scope=scope,
            expires_at=expires_at,
            digest=identifiers.digest(text),
            hint=identifiers.hint(text),
            form_id=form_id,
        )
        return key, text

    def active(self, *, now: datetime | Combinable) -> Self:
        """Return the keys that are neither revoked nor expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)

    def revoke(self, *, now: datetime) -> int:
        """Revoke the keys. Return how many were not yet revoked."""
        return self.filter(revoked_at=None).update(revoked_at=now)


class ApiKey(models.Model):
    """A client's key to one organization's payments in one mode.

    Django's permission `add_apikey` gives access to all payments: a user can add a key for every organization and mode.
    """

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="keys")
    mode = models.CharField(max_length=4, choices=Mode.choices)
    scope = models.CharField(max_length=6, choices=KeyScope.choices, default=KeyScope.READ)
    name = models.CharField(max_length=200, validators=[ONE_LINE])
    digest = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField("ends in", max_length=identifiers.HINT_CHARACTERS, editable=False)
    form_id = models.UUIDField(null=True, unique=True, editable=False)  # of the admin's form that created the key
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        default_permissions = ("add", "change", "view")
        verbose_name = "API key"
        verbose_name_plural = "API keys"
        constraints = [
            models.CheckConstraint(name="api_key_mode_known", condition=Q(mode__in=Mode.values)),
            models.CheckConstraint(name="api_key_scope_known", condition=Q(scope__in=KeyScope.values)),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.mode})"

    @property
    def access(self) -> Access:
        return Access(self.organization_id, self.mode)

    def state(self, *, now: datetime) -> KeyState:
        if self.revoked_at is not None:
            return KeyState.REVOKED
        return KeyState.EXPIRED if self.expires_at is not None and self.expires_at <= now else KeyState.ACTIVE
