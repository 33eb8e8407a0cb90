"""Form fields that the admin's pages share: an organization and a mode, and a period of days.

A list always shows one organization's payments in one mode; the switcher selects both. A period is a preset or two
dates, and has a kind of day.
"""

from copy import copy
from datetime import date, timedelta
from typing import Any, Self
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, QueryDict

from payments.admin.periods import DateRange, Preset, current_day, preset_period
from payments.admin.preferences import read_preferences
from payments.admin.scope import Scope
from payments.models import Access, DayKind, Mode, Organization, Payment, StaffPreferences
from payments.templatetags.texts import DIRECTION_CONTROLS
from payments.totals.daily import Calendar

MENU_CHOICES_MAX = 200

# In these years, every date has a year before and after it.
YEARS = range(1900, 9999)

# An export in parts can begin before midnight, and time zones differ by a day.
TODAY_DIFFERENCE_MAX = timedelta(days=2)


class RequiredSelect(forms.Select):
    """A menu without a blank choice.

    Django reads all choices once more to find out whether the first one is blank. This class saves that query.
    """

    def use_required_attribute(self, initial: Any) -> bool:
        return False


class OrganizationField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """An organization, chosen from a menu. If there are too many for a menu, the user enters the ID.

    The form sets the queryset to the organizations of a scope.
    """

    def __init__(self) -> None:
        super().__init__(Organization.objects.none(), empty_label=None, widget=RequiredSelect)

    def get_bound_field(self, form: forms.BaseForm, field_name: str) -> forms.BoundField:
        if self.queryset.order_by("id")[MENU_CHOICES_MAX : MENU_CHOICES_MAX + 1].exists():  # type: ignore[union-attr]
            self.widget = forms.NumberInput()
        return super().get_bound_field(form, field_name)


class AccessForm(forms.Form):
    """The organization and the mode of a page. The switcher selects them, so the page's own form hides these fields.

    The organizations are those of a scope. The default is the user's last selection, and before it live payments of the
    organization with the smallest ID.
    """

    organization = forms.ModelChoiceField(
        Organization.objects.none(),
        widget=forms.HiddenInput,
        error_messages={"invalid_choice": "Choose an organization in the header. This one does not exist."},
    )
    mode = forms.ChoiceField(choices=Mode.choices, widget=forms.HiddenInput)

    data: QueryDict
    scope: Scope

    @classmethod
    def of_request(cls, request: HttpRequest) -> tuple[Self, StaffPreferences]:
        """Return the form of a page, and the user's preferences."""
        preferences = read_preferences(request)
        return cls.from_query(request.GET, scope=Scope.of(request.user), preferences=preferences), preferences

    @classmethod
    def from_query(cls, query: QueryDict, *, scope: Scope, preferences: StaffPreferences | None = None) -> Self:
        """Return the form with the values of a query string, and defaults for the missing ones."""
        values = query.copy()
        values.setdefault("mode", preferences.mode if preferences else Mode.LIVE)
        if "organization" not in values and (default := default_organization(scope, preferences)):
            values["organization"] = str(default.id)
        form = cls(values, label_suffix="")
        form.scope = scope
        form.fields["organization"].queryset = scope.organizations  # type: ignore[attr-defined]
        return form

    @property
    def access(self) -> Access:
        return Access(self.cleaned_data["organization"].id, self.cleaned_data["mode"])

    @property
    def access_query(self) -> str:
        return access_query(self.access)

    def calendar(self, kind: DayKind) -> Calendar:
        return Calendar.of(self.cleaned_data["organization"], self.access.mode, kind)

    @property
    def has_access(self) -> bool:
        """Return whether the organization and the mode are valid. Other fields may be invalid."""
        return self.errors.keys().isdisjoint(AccessForm.base_fields)

    def page_context(self, subject: object) -> dict[str, Any]:
        """Return the template context of a page about a subject, for its title and the header."""
        if not self.has_access:
            return {"title": str(subject)}
        return {**header_context(self.cleaned_data["organization"], subject, self.access.mode), "subject": subject}

    @property
    def has_payments_in_other_mode(self) -> bool:
        """Return whether the organization has payments in the mode that is not selected. The form must be valid."""
        mode = Mode.TEST if self.access.mode == Mode.LIVE else Mode.LIVE
        return Payment.objects.visible_to(self.access._replace(mode=mode)).exists()


class RecordsForm(forms.Form):
    """Selects records of one organization, or of all organizations of the scope, from those that follow `before` on."""

    organization = forms.ModelChoiceField(Organization.objects.none(), required=False, widget=forms.HiddenInput)
    # The ID of the last record of the previous page.
    before = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput)

    def __init__(self, query: QueryDict, *, scope: Scope) -> None:
        super().__init__(query, label_suffix="")
        self.fields["organization"].queryset = scope.organizations  # type: ignore[attr-defined]
        self.user_scope = scope

    @property
    def scope(self) -> Scope:
        organization = self.cleaned_data["organization"]
        return Scope(frozenset({organization.id})) if organization else self.user_scope

    def page_context(self, subject: str) -> dict[str, Any]:
        """Return the template context for the title and the header."""
        organization = self.cleaned_data.get("organization") if self.is_valid() else None
        return header_context(organization, subject) if organization else {"title": subject}


def header_context(organization: Organization, subject: object, mode: str = "") -> dict[str, Any]:
    """Return the template context of a page, for the header and its title: `Demo Books · October 2026 · Live`."""
    title = f"{DIRECTION_CONTROLS.sub('', organization.name)} · {subject}"
    if not mode:
        return {"title": title, "organization": organization, "access_query": f"organization={organization.id}"}
    access = Access(organization.id, mode)
    title = f"{title} · {Mode(mode).label}"
    return {"title": title, "organization": organization, "access": access, "access_query": access_query(access)}


def access_query(access: Access) -> str:
    """Return an organization and mode as a query string, for links to pages that have both."""
    return urlencode({"organization": access.organization_id, "mode": access.mode})


def default_organization(scope: Scope, preferences: StaffPreferences | None) -> Organization | None:
    """Return the last organization of the user; without one, the organization of the scope with the smallest ID."""
    remembered = preferences.organization_id if preferences else None
    last = None if remembered is None else scope.organizations.filter(id=remembered).first()
    return last or scope.organizations.order_by("id").first()


def initial_access(request: HttpRequest) -> dict[str, Any]:
    """Return the initial organization and mode of a form: those that the pages of the user show."""
    preferences = read_preferences(request)
    return {"organization": default_organization(Scope.of(request.user), preferences), "mode": preferences.mode}


def check_year(day: date) -> None:
    """Raise `ValidationError` if the calendar could end before the days that are computed from this one."""
    if day.year not in YEARS:
        raise ValidationError(f"Enter a date in the years {YEARS[0]} to {YEARS[-1]}.")


def check_today(day: date) -> None:
    if abs(day - current_day()) > TODAY_DIFFERENCE_MAX:
        raise ValidationError("The list is of another day. Open it again.")


def date_field(label: str) -> forms.DateField:
    widget = forms.DateInput(attrs={"type": "date"})
    return forms.DateField(label=label, required=False, widget=widget, validators=[check_year])


class PeriodFields(forms.Form):
    """Selects days: a preset, or dates. Without either, all days are selected. `by` is the kind of day."""

    period = forms.ChoiceField(choices=[("", "All days"), *Preset.choices], required=False)
    since = date_field("From")
    until = date_field("To")
    by = forms.ChoiceField(label="Days", choices=DayKind.choices, required=False)

    default_kind = DayKind.CREATED
    default_period = ""

    def __init__(self, data: dict[str, Any] | None = None, **options: Any) -> None:
        """Leave the dates out if a preset is chosen, which replaces them. Dates select the period "Custom dates".

        Without them, the default period is selected, and the default kind of day if there is none.
        """
        super().__init__(data, **options)
        if not self.is_bound:
            return
        values: Any = copy(self.data)
        if values.get("period") not in {None, "", Preset.CUSTOM}:
            for name in {"since", "until"} & values.keys():
                del values[name]
        if not values.get("period"):
            has_dates = values.get("since") or values.get("until")
            values["period"] = Preset.CUSTOM.value if has_dates else self.default_period
        if not values.get("by"):
            values["by"] = self.default_kind.value
        self.data = values

    def clean(self) -> dict[str, Any]:
        """Validate the dates. The period "Custom dates" needs one."""
        values = super().clean() or self.cleaned_data
        since, until = values.get("since"), values.get("until")
        if since and until and until < since:
            raise ValidationError({"until": "Enter a date on or after From."})
        if values.get("period") == Preset.CUSTOM and not (since or until or self.errors):
            raise ValidationError({"since": "Enter a date in From or To, or choose another period."})
        return values

    @property
    def kind(self) -> DayKind:
        return DayKind(self.cleaned_data.get("by") or self.default_kind)

    def date_range(self, *, today: date) -> DateRange:
        preset = self.cleaned_data["period"]
        if preset in {"", Preset.CUSTOM}:
            return DateRange(self.cleaned_data["since"], self.cleaned_data["until"])
        period = preset_period(preset, today=today)
        return DateRange(period.first, period.last)
