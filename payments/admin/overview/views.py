"""The start page: its form selects an organization, a mode and a period; days without stored totals are summed.

It also says whether an import has failed or is late.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, Q
from django.forms import BoundField
from django.http import HttpRequest
from django.utils import timezone
from django.utils.timesince import timesince

from payments.admin.forms import AccessForm, PeriodFields
from payments.admin.overview.figures import Overview
from payments.admin.overview.totals import Lists, PeriodTotals
from payments.admin.periods import Comparison, Period, Preset, current_day, preset_period
from payments.admin.scope import Scope
from payments.models import Access, DayKind, ImportOutcome, ImportPart, ImportRun, ImportTimes, Payment
from payments.models.days import day_of
from payments.models.history import COMMITTED
from payments.models.ordering import NEWEST_FIRST
from payments.totals.daily import daily_totals, sum_in_time
from payments.totals.figures import DEFINITIONS

DAYS_MAX = 5 * 366
FAILED_DAYS = timedelta(days=7)  # before the last import


class OverviewForm(PeriodFields, AccessForm):
    """Selects an organization, a mode, a period, the kind of day of money, and the compared period."""

    period = forms.ChoiceField(choices=Preset.choices)
    compare = forms.ChoiceField(label="Compare with", choices=Comparison.choices, required=False)

    default_kind = DayKind.PAID
    default_period = Preset.DAYS_30.value

    def clean(self) -> dict[str, Any]:
        """Validate that custom dates are not too long and do not end in the future. `To` is today if it is empty."""
        values = super().clean()
        if values.get("period") == Preset.CUSTOM and not self.errors:
            values["until"] = values["until"] or self.today
            if values["since"] is None:
                raise ValidationError({"since": "Enter a date."})
            for name in ("since", "until"):
                if values[name] > self.today:
                    raise ValidationError({name: "Enter today or an earlier date."})
            if self.selected.length > DAYS_MAX:
                raise ValidationError({"since": "Choose at most five years."})
        return values

    @property
    def is_custom(self) -> bool:
        return bool(self.data["period"] == Preset.CUSTOM)

    @property
    def shown_fields(self) -> list[BoundField]:
        dates = ("since", "until") if self.is_custom else ()
        return [self[name] for name in ("period", *dates, "by", "compare")]

    @cached_property
    def today(self) -> date:
        return current_day(self.cleaned_data["organization"].zone)

    @cached_property
    def selected(self) -> Period:
        values = self.cleaned_data
        if self.is_custom:
            return Period.of_dates(values["since"], values["until"])
        return preset_period(values["period"], today=self.today)

    @property
    def compared(self) -> Period | None:
        """Return the compared period; None for today alone, which is not over yet."""
        is_today = self.selected.first == self.selected.last == self.today
        return None if is_today else self.selected.compared_with(self.cleaned_data["compare"] or Comparison.BEFORE)


def overview_context(request: HttpRequest) -> dict[str, Any]:
    """Return the start page's template context: the form, and the overview if the form is valid."""
    form, _ = OverviewForm.of_request(request)
    if not form.is_valid():
        return {**form.page_context("Overview"), "form": form}
    overview, goes_on = read_overview(form)
    return {
        **form.page_context(form.selected),
        "form": form,
        "definitions": DEFINITIONS,
        "overview": overview,
        "imports": read_imports(form.access, scope=form.scope),
        "goes_on": goes_on,
        "newest_day": newest_day(form) if overview.now.is_empty else None,
    }


def read_overview(form: OverviewForm) -> tuple[Overview, bool]:
    """Return the overview, without the days that cannot be summed in time, and whether another request can go on."""
    overview = stored_overview(form)
    if not overview.missing:
        return overview, False
    calendars = [form.calendar(kind) for kind in {form.kind, DayKind.CREATED}]
    compared = form.compared.days if form.compared else []
    goes_on = sum_in_time(*calendars, days=sorted({*form.selected.days, *compared}))
    overview = stored_overview(form)
    return overview, goes_on and bool(overview.missing)


def stored_overview(form: OverviewForm) -> Overview:
    """Return the overview of the stored totals. Cost: one or two queries for each of one or two periods."""
    before = stored_totals(form, form.compared) if form.compared else None
    preset = "" if form.is_custom else form.cleaned_data["period"]
    lists = Lists(form.access, form.kind, form.selected, preset)
    return Overview(stored_totals(form, form.selected), before, lists, form.today)


def stored_totals(form: OverviewForm, period: Period) -> PeriodTotals:
    by_kind = {kind: daily_totals(form.calendar(kind), days=period.days) for kind in {form.kind, DayKind.CREATED}}
    return PeriodTotals(period, by_kind[form.kind], by_kind[DayKind.CREATED])


def newest_day(form: OverviewForm) -> date | None:
    """Return the created day of the newest payment; None if there are no payments."""
    payments = Payment.objects.visible_to(form.access).order_by(*NEWEST_FIRST)
    created_at = payments.values_list("created_at", flat=True).first()
    return None if created_at is None else day_of(created_at, form.cleaned_data["organization"].zone)


@dataclass(frozen=True)
class Imports:
    """The last import, the last failed one that was not repeated, and the times of the last successful ones."""

    last: ImportRun | None
    failed: ImportRun | None
    times: ImportTimes | None

    @property
    def longest_gap(self) -> str:
        """Return the longest time between two imports in words; no text without an import."""
        last_at = self.times and self.times.last_at
        return timesince(last_at, last_at + self.times.longest_gap) if self.times and last_at else ""


def read_imports(access: Access, *, scope: Scope) -> Imports:
    """Return the state of the imports. Cost: three queries."""
    part = ImportPart.objects.of(access).first()
    last = part.run if part else None
    failed = failed_import(access, scope=scope, since=(last.started_at if last else timezone.now()) - FAILED_DAYS)
    return Imports(last, failed, ImportTimes.objects.of(access))


def failed_import(access: Access, *, scope: Scope, since: datetime) -> ImportRun | None:
    """Return the last import that failed, if none of the same source has succeeded after it.

    An import without a valid record of an organization that exists belongs to none. Users of all organizations see it.
    """
    of_access = Q(parts__organization_id=access.organization_id, parts__mode=access.mode)
    recent = scope.imports.filter(started_at__gte=since)
    known = recent.filter(parts__organization_id__in=scope.organizations.values("id"))
    selected = of_access if scope.ids is not None else of_access | ~Q(id__in=known.values("id"))
    later = scope.imports.filter(of_access, source=OuterRef("source"), id__gt=OuterRef("id"), outcome__in=COMMITTED)
    return recent.filter(selected, outcome=ImportOutcome.FAILED).exclude(Exists(later)).first()
