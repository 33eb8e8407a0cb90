"""Whose payments staff look at, and of which mode: always one organization's, as a key would see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from django import forms
from django.http import QueryDict

from payments.models import Mode, Organization


@dataclass(frozen=True)
class Scope:
    """An organization and a mode, by which payments are seen."""

    organization: Organization
    mode: str

    @property
    def organization_id(self) -> int:
        return self.organization.id


class ScopeForm(forms.Form):
    """Chooses a scope; where nothing is chosen, live payments of the first organization."""

    organization = forms.ModelChoiceField(Organization.objects.order_by("name", "id"), empty_label=None)
    mode = forms.ChoiceField(choices=Mode.choices)

    @classmethod
    def of(cls, query: QueryDict) -> Self:
        """Return the form as a query string fills it in."""
        given = query.copy()
        given.setdefault("mode", Mode.LIVE)
        if "organization" not in given and (first := Organization.objects.order_by("id").first()):
            given["organization"] = str(first.id)
        return cls(given)

    @property
    def scope(self) -> Scope:
        """Return what was chosen; the form is valid."""
        return Scope(self.cleaned_data["organization"], self.cleaned_data["mode"])
