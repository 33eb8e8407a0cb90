"""Whose payments staff look at, and of which mode: always one organization's, as a key would see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django import forms
from django.http import QueryDict

from payments.models import Access, Mode, Organization

if TYPE_CHECKING:
    ModelChoiceField = forms.ModelChoiceField[Organization]
else:
    ModelChoiceField = forms.ModelChoiceField

MENU_MAX = 200


class Menu(forms.Select):
    """A menu that does not read all its choices once more to find out whether there is a blank one."""

    def use_required_attribute(self, initial: Any) -> bool:
        return False


class OrganizationField(ModelChoiceField):
    """An organization: from a menu or, where there are too many for one, by its id."""

    def __init__(self) -> None:
        super().__init__(Organization.objects.order_by("name", "id"), empty_label=None, widget=Menu)

    def get_bound_field(self, form: forms.BaseForm, field_name: str) -> forms.BoundField:
        if Organization.objects.order_by("id")[MENU_MAX : MENU_MAX + 1].exists():
            self.widget = forms.NumberInput()
        return super().get_bound_field(form, field_name)


class ScopeForm(forms.Form):
    """Chooses a scope; where nothing is chosen, live payments of the organization with the smallest id."""

    organization = OrganizationField()
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
    def access(self) -> Access:
        """Return the chosen organization and mode of a valid form."""
        return Access(self.cleaned_data["organization"].id, self.cleaned_data["mode"])
