"""The report of a month: a page that prints, and the same figures as text, CSV and JSON."""

from collections.abc import Iterator, Sequence
from datetime import date
from http import HTTPStatus
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from payments.admin.base import RELOAD_HEADERS, error_text
from payments.admin.forms import YEARS, AccessForm
from payments.admin.overview.totals import Lists
from payments.admin.periods import Period, current_day, start_of, start_of_next
from payments.admin.scope import Scope
from payments.conf import conf
from payments.export.reports import FORMATS, MARKS, ReportFormat, figure_texts, has_unknown, known_text
from payments.models import IN_PROGRESS, DayKind, StaffPreferences
from payments.models.days import DAY
from payments.totals.figures import DEFINITIONS, KNOWN, NO_METHOD, Figures
from payments.totals.report import Report, Row, TotalsNotReady, days_of_month, month_of, parse_month, read_report


class MonthForm(AccessForm):
    """Selects an organization, a mode, a month that has begun, and the kind of day. The default is the last month."""

    month = forms.CharField(required=False, widget=forms.TextInput(attrs={"type": "month"}))
    by = forms.ChoiceField(label="Days", choices=DayKind.choices)

    @classmethod
    def from_query(cls, query: QueryDict, *, scope: Scope, preferences: StaffPreferences | None = None) -> Self:
        values = query.copy()
        values.setdefault("by", DayKind.PAID)
        return super().from_query(values, scope=scope, preferences=preferences)

    def clean_month(self) -> date:
        if not self.cleaned_data["month"]:
            if "organization" not in self.cleaned_data:
                return date.min  # the default needs the organization, whose error is enough
            self.data["month"] = month_of(start_of(current_day(self.cleaned_data["organization"].zone), "month") - DAY)
        month = parse_month(self.data.get("month", ""))
        if month is None or month.year not in YEARS:
            raise ValidationError(f"Enter a month such as 2026-10, in the years {YEARS[0]} to {YEARS[-1]}.")
        return month

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if {"organization", "month"} <= values.keys():
            values["days"] = days_of_month(values["month"], today=current_day(values["organization"].zone))
            if not values["days"]:
                raise ValidationError({"month": "Enter a month that has begun."})
        return values

    def query(self, **changes: str) -> str:
        """Return the query string of the page with other values of some fields."""
        values = {"month": month_of(self.cleaned_data["month"]), "by": self.cleaned_data["by"], **changes}
        return f"{self.access_query}&{urlencode(values)}"


class Line(NamedTuple):
    """A line of a table: the figures of a method or a day, and the list of their payments."""

    name: str
    figures: Figures
    cells: Sequence[str]
    href: str


@require_safe
@permission_required("payments.view_payment", raise_exception=True)
def month_report(request: HttpRequest) -> HttpResponse:
    """Show the report of a month, or return it as a file if the query string has `format`."""
    form, _ = MonthForm.of_request(request)
    report, missing_days, goes_on = None, 0, False
    if form.is_valid():
        values = form.cleaned_data
        try:
            report = read_report(values["organization"], form.calendar(DayKind(values["by"])), days=values["days"])
        except TotalsNotReady as error:
            missing_days, goes_on = error.days, error.goes_on
    if "format" in request.GET:
        return file_response(report, FORMATS.get(request.GET["format"]), is_valid=form.is_valid())
    context = {
        **admin.site.each_context(request),
        "form": form,
        "missing_days": missing_days,
        "goes_on": goes_on,
        **(page_context(form, report) if form.is_valid() else form.page_context("Month-end report")),
    }
    headers = RELOAD_HEADERS if goes_on else {}
    return TemplateResponse(request, "admin/report.html", context, headers=headers)


def page_context(form: MonthForm, report: Report | None) -> dict[str, Any]:
    month = form.cleaned_data["month"]
    following = start_of_next(month, "month")
    return {
        **form.page_context(f"{month:%B} {month.year}"),
        "report": report,
        "sections": list(sections(report)) if report else [],
        "downloads": [(name, form.query(format=name)) for name in FORMATS],
        "previous": form.query(month=month_of(start_of(month - DAY, "month"))),
        "next": form.query(month=month_of(following))
        if following <= current_day(form.cleaned_data["organization"].zone)
        else "",
        "definitions": DEFINITIONS,
        "no_method": NO_METHOD,
        "marks": MARKS if report and has_unknown(report.by_currency) else "",
        "open_max": conf.SUMMED_PAYMENTS_MAX,
        "open_href": open_href(form, report.last_day) if report else "",
    }


def open_href(form: MonthForm, last_day: date) -> str:
    """Return the list of the payments in progress that were created up to a day."""
    query = urlencode({"until": last_day, "by": DayKind.CREATED.value, "status": sorted(IN_PROGRESS)}, doseq=True)
    return f"{reverse('admin:payments_payment_changelist')}?{form.access_query}&{query}"


def sections(report: Report) -> Iterator[tuple[Line, dict[str, str], dict[str, list[Line]]]]:
    """Yield the total of each currency, the amounts that may be unknown, and the tables."""
    calendar = report.calendar
    lists = Lists(calendar.access, calendar.kind, Period(report.month, report.last_day))
    for total in report.by_currency:
        currency = total.figures.currency
        methods, days = (
            [row for row in rows if row.figures.currency == currency] for rows in (report.by_method, report.daily)
        )
        by_method = [line_of(row, lists.paid(currency, method=[row.name])) for row in methods]
        periods = [Period(day, day) for day in (date.fromisoformat(row.name) for row in days)]
        by_day = [line_of(row, lists.paid(currency, part=part)) for row, part in zip(days, periods, strict=True)]
        known = {name: known_text(total.figures, name) for name in KNOWN}
        yield line_of(total, lists.paid(currency)), known, {"Method": by_method, "Day": by_day}


def line_of(row: Row, href: str) -> Line:
    return Line(row.name, row.figures, figure_texts(row.figures), href)


def file_response(report: Report | None, file_format: ReportFormat | None, *, is_valid: bool) -> HttpResponse:
    """Return the report as a file; an error as plain text if there is no report."""
    if not is_valid or file_format is None:
        return error_text("The organization, mode, month or format is invalid.", HTTPStatus.BAD_REQUEST)
    if report is None:
        text = "The figures are being computed. Try again in a second."
        return error_text(text, HTTPStatus.SERVICE_UNAVAILABLE)
    access, kind = report.calendar.access, report.calendar.kind.value
    name = f"report-{access.organization_id}-{access.mode}-{month_of(report.month)}-{kind}.{file_format.suffix}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(file_format.write(report), headers=headers, content_type=file_format.content_type)
