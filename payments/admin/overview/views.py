"""The start page: its form selects an organization, a mode and a period; days without stored totals are summed."""

from collections.abc import Sequence
from datetime import date
from random import randrange
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField
from django.http import HttpRequest, QueryDict

from payments.admin.access_form import AccessForm
from payments.admin.overview.figures import Overview
from payments.admin.overview.statistics import Statistics
from payments.admin.period_fields import PeriodFields
from payments.admin.periods import Period, Preset, current_day, preset_period
from payments.admin.preferences import read_preferences, remember_access
from payments.models import Access, DayKind, Organization, StaffPreferences
from payments.totals.daily import Calendar, daily_totals, sum_in_time

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
        values = self.cleaned_data
        if values["period"] == Preset.CUSTOM:
            return Period(values["since"], values["until"])
        return preset_period(values["period"], today=current_day())

    @property
    def title(self) -> str:
        preset = Preset(self.cleaned_data["period"])
        return str(self.selected if preset == Preset.CUSTOM else preset.label)

    @property
    def access_fields(self) -> list[BoundField]:
        return [self[name] for name in AccessForm.base_fields]

    @property
    def preset_links(self) -> list[PresetLink]:
        access = {name: self[name].value() or "" for name in AccessForm.base_fields}
        return [
            PresetLink(str(preset.label), f"?{urlencode({**access, 'period': preset})}", preset == self.data["period"])
            for preset in Preset
            if preset != Preset.CUSTOM
        ]


def check_dates(since: date | None, until: date | None) -> None:
    if since is None or until is None:
        raise ValidationError({"until" if since else "since": "Enter a date."})
    if until > current_day():
        raise ValidationError({"until": "Enter today (UTC) or an earlier date."})
    if Period(since, until).length > DAYS_MAX:
        raise ValidationError({"until": f"Choose at most {DAYS_MAX} days."})


def overview_context(request: HttpRequest) -> dict[str, Any]:
    """Return the start page's template context: the form, and the overview if the form is valid."""
    preferences = read_preferences(request)
    form = OverviewForm.from_query(request.GET, preferences=preferences)
    if not form.is_valid():
        return {"form": form}
    if form.names_access(request.GET):
        remember_access(preferences, form.access)
    return {
        "form": form,
        "title": form.title,
        "access": form.access,
        "access_query": form.access_query,
        "overview": read_overview(form.cleaned_data["organization"], form.access, form.selected),
    }


def read_overview(organization: Organization, access: Access, period: Period) -> Overview:
    """Return the overview of a period, without the days that cannot be summed in time."""
    calendar = Calendar.of(organization, access.mode, DayKind.CREATED)
    overview = stored_overview(calendar, period)
    if overview.has_missing_days:
        sum_in_random_order(calendar, period.days, overview.previous.period.days)
        overview = stored_overview(calendar, period)
    return overview


def stored_overview(calendar: Calendar, period: Period) -> Overview:
    statistics = (
        Statistics(part, daily_totals(calendar, days=part.days)) for part in (period, period.compared_with("before"))
    )
    return Overview(calendar.access, *statistics)


def sum_in_random_order(calendar: Calendar, days: Sequence[date], before: Sequence[date]) -> None:
    """Compute and store the missing totals of the days of a period and of the period before, until the time is up.

    The next request sums the remaining days. A request begins at a random day of the period, or with the period before:
    a day that takes too long ends the request, and would otherwise block the same days in each request.
    """
    start = randrange(len(days) + 1)  # noqa: S311  no secret
    sum_in_time(calendar, days=[*days[start:], *before, *days[:start]])
