"""The totals of the API: sums of payments by day, by month or in total, in the organization's time zone."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from django.db.models import TextChoices
from django.http import HttpRequest
from django.utils.functional import cached_property
from rest_framework.request import Request

from payments.api.base import ReadView
from payments.api.errors import FiguresNotReady, InvalidParameter
from payments.api.etags import conditional
from payments.api.parameters import parse_query, query_string
from payments.hal import HAL, HTML, Link
from payments.listing.content import Query
from payments.listing.feed import end_query
from payments.listing.filters import InvalidSelection, Selection, day_parameters, parse_selection
from payments.models import DayKind, Organization
from payments.models.days import days_between
from payments.record import DATE
from payments.runtime.process import process
from payments.totals.daily import Calendar
from payments.totals.figures import selected
from payments.totals.report import TotalsNotReady, Unit, complete_totals, period_rows

FILTER_NAMES = ("method", "currency")
NAMES = frozenset({"from", "to", "by", "day", *FILTER_NAMES})

# How many days `to` may be after `from`.
APART_MAX = 1830
APART_MAX_BY_DAY = 366

ChoiceT = TypeVar("ChoiceT", bound=TextChoices)


class TotalsParameters(NamedTuple):
    """The totals that a request asks for: of the days from `first` to `last`, for each period."""

    first: date
    last: date
    unit: Unit
    kind: DayKind
    selection: Selection


def parse_totals_parameters(query: str) -> TotalsParameters:
    """Return the parameters, or raise the first error in the order that docs/api/reference.md describes."""
    parameters = parse_query(query, known=NAMES)
    first, last = (parse_day(parameters, name) for name in ("from", "to"))
    if not 0 <= (last - first).days <= APART_MAX:
        raise InvalidParameter(f"to must be from 0 to {APART_MAX} days after from.", field="to")
    unit = parse_choice(parameters, "by", default=Unit.TOTAL)
    if unit == Unit.DAY and (last - first).days > APART_MAX_BY_DAY:
        raise InvalidParameter(f"to must be from 0 to {APART_MAX_BY_DAY} days after from if by is day.", field="to")
    kind = parse_choice(parameters, "day", default=DayKind.PAID)
    try:
        return TotalsParameters(first, last, unit, kind, parse_selection(parameters))
    except InvalidSelection as error:
        raise InvalidParameter(str(error), field=error.field) from None


def parse_day(parameters: Mapping[str, str], name: str) -> date:
    text = parameters.get(name, "")
    try:
        if re.fullmatch(DATE, text):
            return date.fromisoformat(text)
    except ValueError:  # 30 February
        pass
    raise InvalidParameter(f"{name} must be a day such as 2026-10-31.", field=name)


def parse_choice(parameters: Mapping[str, str], name: str, *, default: ChoiceT) -> ChoiceT:
    choices = type(default)
    text = parameters.get(name, default.value)
    if text not in choices.values:
        raise InvalidParameter(f"{name} must be {', '.join(choices.values[:-1])} or {choices.values[-1]}.", field=name)
    return choices(text)


class PaymentTotals(ReadView):
    """Sums of the payments by currency, for each day or month, or for all days together."""

    name = "Payment totals"
    parameters: TotalsParameters

    def get_query(self, request: HttpRequest) -> Query:
        """Return the query for the revision alone: a view that reads stored totals reads no payments."""
        self.parameters = parse_totals_parameters(query_string(request.META))
        return end_query()

    @cached_property
    def organization(self) -> Organization:
        return Organization.objects.get(id=self.request.auth.access.organization_id)  # type: ignore[union-attr]

    def find_state(self, _request: Request) -> tuple[Any, ...]:
        return (self.organization.time_zone,)

    @conditional
    def get(self, request: Request, **kwargs: str) -> Any:
        first, last, unit, kind, selection = self.parameters
        calendar = Calendar.of(self.organization, request.auth.access.mode, kind)  # type: ignore[union-attr]
        _ = self.reader.content  # before the totals: its revision must not be newer
        try:
            share = process.shares.filters(request.auth.digest)  # type: ignore[union-attr]
            by_day = complete_totals(calendar, days=days_between(first, last), share=share)
        except TotalsNotReady:
            raise FiguresNotReady from None
        groups = {applied.name: applied.values for applied in selection.filters}
        rows = period_rows({day: selected(totals, **groups) for day, totals in by_day.items()}, unit)
        return {
            "count": len(rows),
            "timeZone": calendar.time_zone,
            "_embedded": {"totals": [{"period": row.name, **row.members} for row in rows]},
            "_links": self.get_links(calendar),
        }

    def get_links(self, calendar: Calendar) -> dict[str, Link]:
        first, last, unit, kind, selection = self.parameters
        filters = {applied.name: ",".join(applied.values) for applied in selection.filters}
        own = {"from": first, "to": last, "by": unit.value, "day": kind.value, **filters}
        bounds = day_parameters(kind.field, first, last, zone=calendar.zone)
        listed = parse_selection({**filters, **bounds}).query.removeprefix("&")
        return {
            "self": Link(f"{self.links.url('payments:payment-totals')}?{urlencode(own)}", HAL),
            "payments": Link(f"{self.links.list}?{listed}", HAL),
            "documentation": Link(self.links.section("get-totals"), HTML),
        }
