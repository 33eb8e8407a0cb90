"""The start page: reads the figures of a period, and sums the days whose totals are missing."""

import time
from collections.abc import Sequence
from datetime import date
from typing import Any

from django.db import OperationalError
from django.http import HttpRequest

from payments.admin.overview_figures import Overview
from payments.admin.overview_form import OverviewForm
from payments.admin.periods import Period
from payments.admin.preferences import read_preferences
from payments.admin.statistics import Statistics
from payments.models import Access
from payments.runtime.database_errors import is_locked, is_timeout
from payments.totals import daily_totals, sum_missing_days

# A request stops summing days after this time, well before its deadline. The next request sums the remaining days.
SUMMING_SECONDS_MAX = 0.7


def overview_context(request: HttpRequest) -> dict[str, Any]:
    """Return the start page's template context: the form, and the overview if the form is valid."""
    form = OverviewForm.from_request(request, read_preferences(request))
    if not form.is_valid():
        return {"form": form}
    return {
        "form": form,
        "title": form.title,
        "access": form.access,
        "access_query": form.access_query,
        "overview": read_overview(form.access, form.selected),
    }


def read_overview(access: Access, period: Period) -> Overview:
    """Return the overview of a period, without the days that cannot be summed in time."""
    overview = stored_overview(access, period)
    if overview.has_missing_days:
        sum_in_time(access, overview.days)
        overview = stored_overview(access, period)
    return overview


def stored_overview(access: Access, period: Period) -> Overview:
    """Return the overview of the days whose totals are stored."""
    before = period.previous
    previous = Statistics(before, daily_totals(access, days=before.days)) if before else None
    return Overview(access, Statistics(period, daily_totals(access, days=period.days)), previous)


def sum_in_time(access: Access, days: Sequence[date]) -> None:
    """Compute and store the missing totals of `days`, in their order, until the time is up."""
    stop_at = time.monotonic() + SUMMING_SECONDS_MAX
    try:
        sum_missing_days(access, days=days, has_time=lambda: time.monotonic() < stop_at)
    except OperationalError as error:
        if not (is_timeout(error) or is_locked(error)):
            raise
