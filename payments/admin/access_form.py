"""The form that selects an organization and a mode. A list always shows one organization's payments in one mode."""

from typing import Any, Self
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest, QueryDict

from payments.admin.preferences import read_preferences, remember_access
from payments.models import Access, Mode, Organization, Payment, StaffPreferences
from payments.templatetags.texts import DIRECTION_CONTROLS

MENU_CHOICES_MAX = 200


class RequiredSelect(forms.Select):
    """A menu without a blank choice.

    Django reads all choices once more to find out whether the first one is blank. This class saves that query.
    """

    def use_required_attribute(self, initial: Any) -> bool:
        return False


class OrganizationField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """An organization, chosen from a menu. If there are too many for a menu, the user enters the ID."""

    def __init__(self) -> None:
        super().__init__(Organization.objects.order_by("name", "id"), empty_label=None, widget=RequiredSelect)

    def get_bound_field(self, form: forms.BaseForm, field_name: str) -> forms.BoundField:
        if Organization.objects.order_by("id")[MENU_CHOICES_MAX : MENU_CHOICES_MAX + 1].exists():
            self.widget = forms.NumberInput()
        return super().get_bound_field(form, field_name)


class AccessForm(forms.Form):
    """Selects an organization and a mode.

    The default is the user's last selection, and before it live payments of the organization with the smallest ID.
    """

    organization = OrganizationField()
    mode = forms.ChoiceField(choices=Mode.choices)

    data: QueryDict

    @classmethod
    def of_request(cls, request: HttpRequest) -> tuple[Self, StaffPreferences]:
        """Return the form of a page and the user's preferences. Remember the organization and mode that it names."""
        preferences = read_preferences(request)
        form = cls.from_query(request.GET, preferences=preferences)
        if form.is_valid() and not request.GET.keys().isdisjoint(AccessForm.base_fields):
            remember_access(preferences, form.access)
        return form, preferences

    @classmethod
    def from_query(cls, query: QueryDict, *, preferences: StaffPreferences | None = None) -> Self:
        """Return the form with the values of a query string, and defaults for the missing ones."""
        values = query.copy()
        values.setdefault("mode", preferences.mode if preferences else Mode.LIVE)
        if "organization" not in values and (default := default_organization(preferences)):
            values["organization"] = str(default.id)
        return cls(values, label_suffix="")

    @property
    def access(self) -> Access:
        return Access(self.cleaned_data["organization"].id, self.cleaned_data["mode"])

    @property
    def access_query(self) -> str:
        return access_query(self.access)

    def page_context(self, period: object) -> dict[str, Any]:
        """Return the template context of a page about a period: `Demo Books · October 2026 · Live`."""
        organization, mode = self.cleaned_data["organization"], Mode(self.access.mode).label
        name = DIRECTION_CONTROLS.sub("", organization.name)
        return {
            "title": f"{name} · {period} · {mode}",
            "organization": organization,
            "period": period,
            "mode": mode,
            "access": self.access,
            "access_query": self.access_query,
        }

    @property
    def has_payments_in_other_mode(self) -> bool:
        """Return whether the organization has payments in the mode that is not selected. The form must be valid."""
        mode = Mode.TEST if self.access.mode == Mode.LIVE else Mode.LIVE
        return Payment.objects.visible_to(self.access._replace(mode=mode)).exists()


def access_query(access: Access) -> str:
    """Return an organization and mode as a query string, for links to pages that have both."""
    return urlencode({"organization": access.organization_id, "mode": access.mode})


def default_organization(preferences: StaffPreferences | None) -> Organization | None:
    """Return the last organization of the user; without one, the organization with the smallest ID."""
    remembered = preferences.organization_id if preferences else None
    last = None if remembered is None else Organization.objects.filter(id=remembered).first()
    return last or Organization.objects.order_by("id").first()
