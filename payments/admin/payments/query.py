"""The query string of the payment list: the form's fields without the position, for links and saved filters."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from django.http import QueryDict

from payments.admin.forms import AccessForm
from payments.admin.payments.form import SearchForm
from payments.admin.periods import Preset
from payments.models import DayKind
from payments.models.choices import method_label
from payments.templatetags.texts import sequence_label, status_label

ACCESS_FIELDS = tuple(AccessForm.base_fields)
DATE_FIELDS = ("since", "until")
AMOUNT_FIELDS = ("amount_min", "amount_max")

# The fields with a default value, which links leave out. Dates imply the period "Custom dates".
DEFAULTS = {("sort", "desc"), ("by", DayKind.CREATED), ("period", Preset.CUSTOM)}

# The fields that are not filters: the page shows them in other ways.
NOT_FILTERS = frozenset({*ACCESS_FIELDS, *DATE_FIELDS, "q", "sort", "by", "count", "today"})


# How a chip shows the values of a field.
LABELS = {"status": status_label, "method": method_label, "sequence": sequence_label}


class Chip(NamedTuple):
    """A filter of the list: its text, and the query string of the list without it."""

    text: str
    query: str


def list_query(form: SearchForm, *, without: Collection[str] = ()) -> QueryDict:
    """Return the values of the form's fields as the form reads them, without empty ones and without some fields."""
    query = QueryDict(mutable=True)
    for name, field in form.fields.items():
        data = field.widget.value_from_datadict(form.data, form.files, name)
        values = [value for value in (data if isinstance(data, list) else [data]) if value]
        if values and name not in {*without, "today"} and (name, *values) not in DEFAULTS:
            query.setlist(name, values)
    return query


def filter_names(form: SearchForm) -> list[str]:
    """Return the names of the fields that restrict the list, for people."""
    names = list_query(form, without=(*ACCESS_FIELDS, "sort", "by", "count"))
    return ["search" if name == "q" else name for name in names]


def query_of_parts(form: SearchForm) -> str:
    """Return the query string for the next part of an export: its periods end with the same day."""
    query = list_query(form)
    query["today"] = str(form.current_day)
    return query.urlencode()


def query_with_text(form: SearchForm, text: str) -> QueryDict:
    """Return the query of the list with another search text."""
    query = list_query(form)
    query["q"] = text
    return query


def query_for_words(form: SearchForm) -> QueryDict:
    """Return the query of the list whose search text is in quotation marks."""
    text = list_query(form).get("q", "").replace('"', "")
    return query_with_text(form, f'"{text}"')


def chips(form: SearchForm) -> list[Chip]:
    """Return a chip for each value of a filter. The form must be valid."""
    return [
        Chip(
            period_text(form) if name == "period" else f"{form[name].label}: {LABELS.get(name, str)(value)}",
            query_without(form, name, value),
        )
        for name in form.fields
        if name not in NOT_FILTERS
        for value in chip_values(form, name)
    ]


def period_text(form: SearchForm) -> str:
    """Return the period of the list: `Paid: last month`, `Created: from 1 to 15 October 2026`."""
    preset = Preset(form.cleaned_data["period"])
    days = str(form.days) if preset == Preset.CUSTOM else preset.label.lower()
    return f"{form.kind.value.capitalize()}: {days}"


def chip_values(form: SearchForm, name: str) -> Iterable[str]:
    """Return the texts of a field's values."""
    value = form.cleaned_data[name]
    if isinstance(value, list):
        return value
    return [str(value)] if value else ()


def query_without(form: SearchForm, name: str, value: str) -> str:
    """Return the query string of the list without one value of a filter."""
    others = [other for other in chip_values(form, name) if other != value]
    without = {name}
    if name == "period":
        without |= {*DATE_FIELDS, "by"}
    if name == "currency" and not others:
        without |= set(AMOUNT_FIELDS)  # amounts need a currency
    query = list_query(form, without=without)
    query.setlist(name, others)
    return query.urlencode()
