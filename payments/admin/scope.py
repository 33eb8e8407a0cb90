"""The organizations that a user of the admin sees. Every query of the admin for data of organizations starts here.

Users with the permission `payments.all_organizations`, and so superusers, see all organizations; others see those of
their `StaffOrganization` rows. A scope is read for each request, so a change takes effect at the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, cast

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Model, QuerySet

from payments.models import ImportPart, ImportRun, Organization, Payment, PaymentQuerySet, StaffOrganization

ALL_ORGANIZATIONS = "payments.all_organizations"

ModelT = TypeVar("ModelT", bound=Model)


@dataclass(frozen=True)
class Scope:
    """The IDs of the organizations that a user sees; None for all organizations, also future ones."""

    ids: frozenset[int] | None

    @classmethod
    def of(cls, user: User | AnonymousUser) -> Scope:
        """Return the scope of a user. Cost: one query, unless the user sees all organizations."""
        if user.has_perm(ALL_ORGANIZATIONS):
            return EVERYTHING
        rows = StaffOrganization.objects.filter(user_id=cast("int", user.pk))
        return cls(frozenset(rows.values_list("organization_id", flat=True)))

    @property
    def organizations(self) -> QuerySet[Organization]:
        """Return the organizations by name."""
        return self.limit(Organization.objects.order_by("name", "id"), field="id")

    def limit(self, objects: QuerySet[ModelT], *, field: str = "organization_id") -> QuerySet[ModelT]:
        """Return the objects whose field has the ID of an organization of the scope."""
        return objects if self.ids is None else objects.filter(**{f"{field}__in": sorted(self.ids)})

    @property
    def payments(self) -> PaymentQuerySet:
        """Return the payments in both modes. They are for a search by ID: lists begin with `visible_to`.

        The organizations are named because a table that is distributed has no index that starts with the ID.
        """
        return Payment.objects.filter(organization__in=self.organizations.order_by())

    @property
    def imports(self) -> QuerySet[ImportRun]:
        """Return the imports with records of the organizations, newest first; in all, also those without any record."""
        runs = ImportRun.objects.order_by("-id")
        return runs if self.ids is None else runs.filter(id__in=self.limit(ImportPart.objects.values("run_id")))

    def existing(self) -> Scope:
        """Return the scope without IDs of organizations that do not exist."""
        return self if self.ids is None else Scope(frozenset(self.organizations.values_list("id", flat=True)))


EVERYTHING = Scope(None)
NOTHING = Scope(frozenset())
