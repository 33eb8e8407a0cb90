"""The form of the start page: an organization, a mode and a period."""

from datetime import date
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField
from django.http import QueryDict

from payments.admin.access_form import AccessForm
from payments.admin.periods import Period, PeriodFields, Preset, current_day, preset_period
from payments.models import StaffPreferences

DAYS_MAX = 366


class PresetLink(NamedTuple):
    """A link to the overview of a period."""

    name: str
    href: str
    is_current: bool


class OverviewForm(PeriodFields, AccessForm):
    """Selects an organization, a mode and a period. The default is the last 30 days."""

    period = forms.ChoiceField(choices=Preset.choices)

    @classmethod
    def from_query(cls, query: QueryDict, *, preferences: StaffPreferences | None = None) -> Self:
        """Return the form with the values of a query string, and defaults for the missing ones."""
        values = query.copy()
        if not values.get("period"):
            has_dates = values.get("since") or values.get("until")
            values["period"] = Preset.CUSTOM if has_dates else Preset.DAYS_30
        return super().from_query(values, preferences=preferences)

    def clean(self) -> dict[str, Any]:
        """Validate that a custom period has both dates, is not too long and does not end in the future."""
        values = super().clean()
        if values.get("period") == Preset.CUSTOM and {"since", "until"} <= values.keys():
            check_dates(values["since"], values["until"])
        return values

    @property
    def selected(self) -> Period:
        """Return the period. The form must be valid."""
        values = self.cleaned_data
        if values["period"] == Preset.CUSTOM:
            return Period(values["since"], values["until"])
        return preset_period(values["period"], today=current_day())

    @property
    def title(self) -> str:
        """Return the name of the period, or its dates. The form must be valid."""
        preset = Preset(self.cleaned_data["period"])
        return str(self.selected if preset == Preset.CUSTOM else preset.label)

    @property
    def access_fields(self) -> list[BoundField]:
        return [self[name] for name in AccessForm.base_fields]

    @property
    def preset_links(self) -> list[PresetLink]:
        """Return links to the presets, for the same organization and mode."""
        access = {name: self[name].value() or "" for name in AccessForm.base_fields}
        return [
            PresetLink(str(preset.label), f"?{urlencode({**access, 'period': preset})}", preset == self.data["period"])
            for preset in Preset
            if preset != Preset.CUSTOM
        ]


def check_dates(since: date | None, until: date | None) -> None:
    """Check the dates of a custom period.

    :raises ValidationError: if one is missing, if they are too far apart, or if the last one is in the future
    """
    if since is None or until is None:
        raise ValidationError({"until" if since else "since": "Enter a date."})
    if until > current_day():
        raise ValidationError({"until": "Enter today (UTC) or an earlier date."})
    if Period(since, until).length > DAYS_MAX:
        raise ValidationError({"until": f"Choose at most {DAYS_MAX} days."})
