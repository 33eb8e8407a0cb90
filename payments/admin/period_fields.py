"""The form fields that select a period of days: a preset, or two dates, and the kind of day."""

from copy import copy
from datetime import date, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from payments.admin.periods import DateRange, Preset, current_day, preset_period
from payments.models import DayKind

# In these years, every date has a year before and after it.
YEARS = range(1900, 9999)

# An export in parts can begin before midnight, and time zones differ by a day.
TODAY_DIFFERENCE_MAX = timedelta(days=2)


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

    def __init__(self, data: dict[str, Any] | None = None, **options: Any) -> None:
        """Leave the dates out if a preset is chosen, which replaces them, and select the default kind of day."""
        super().__init__(data, **options)
        if not self.is_bound:
            return
        values: Any = copy(self.data)
        if values.get("period") not in {None, "", Preset.CUSTOM}:
            for name in {"since", "until"} & values.keys():
                del values[name]
        if not values.get("by"):
            values["by"] = self.default_kind.value
        self.data = values

    def clean(self) -> dict[str, Any]:
        """Validate the dates, and set `period` to `custom` if it is empty and there are dates."""
        values = super().clean() or self.cleaned_data
        since, until = values.get("since"), values.get("until")
        if since and until and until < since:
            raise ValidationError({"until": "Enter a date on or after From."})
        if since or until:
            values["period"] = Preset.CUSTOM
        elif values.get("period") == Preset.CUSTOM and not self.errors:
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
