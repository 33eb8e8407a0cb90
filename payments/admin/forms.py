"""Form fields that the admin's pages share: an organization and a mode, and a period of days.

A list always shows one organization's payments in one mode. A period is a preset or two dates, and has a kind of day.
"""

from copy import copy
from datetime import date, timedelta
from typing import Any, Self
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, QueryDict

from payments.admin.periods import DateRange, Preset, current_day, preset_period
from payments.admin.preferences import read_preferences, remember_access
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

    def calendar(self, kind: DayKind) -> Calendar:
        return Calendar.of(self.cleaned_data["organization"], self.access.mode, kind)

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
