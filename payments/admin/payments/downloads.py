"""Exports of the payment list, part by part: CSV for a bookkeeper, and the files of `manage.py export_payments`."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Self
from urllib.parse import urlencode

from django import forms
from django.core import signing
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.text import slugify

from payments.admin.payments.form import WordsInput
from payments.export.bookkeeping import (
    COLUMNS,
    DECIMALS,
    DEFAULT_COLUMNS,
    DELIMITERS,
    Book,
    BookOptions,
    InvalidColumns,
    column_label,
    parse_columns,
)
from payments.export.files import FORMATS, Format
from payments.models import DayKind, Organization
from payments.models.days import last_of_month, validate_time_zone
from payments.totals.figures import Total

SUMS_SALT = "payments.admin.export_sums"


class InvalidExport(Exception):
    """The options of an export are invalid. The text says why."""


class ExportForm(forms.Form):
    """The options of a CSV file for a bookkeeper. Their defaults are those of `manage.py export_payments`."""

    columns = forms.Field(required=False, widget=WordsInput("Others, such as metadata.order"))
    decimal = forms.ChoiceField(choices=[(name, f"1234{sign}50") for name, sign in DECIMALS.items()], required=False)
    delimiter = forms.ChoiceField(choices=[(name, name.capitalize()) for name in DELIMITERS], required=False)
    time_zone = forms.CharField(required=False, max_length=64, validators=[validate_time_zone])
    totals = forms.BooleanField(label="Totals by currency", required=False)

    @classmethod
    def for_page(cls, stored: Mapping[str, Any] | None, *, organization: Organization) -> Self:
        """Return the form with the options that are stored for a user."""
        form = cls(initial={"columns": DEFAULT_COLUMNS, **(stored or {})}, label_suffix="")
        form.fields["columns"].widget.choices = [(column, column_label(column)) for column in COLUMNS]
        form.fields["time_zone"].widget.attrs["placeholder"] = organization.time_zone
        return form

    def clean_columns(self) -> list[str]:
        columns = self.cleaned_data["columns"]
        if not columns and "columns" in self.data:
            raise ValidationError("Choose a column.")
        try:
            return parse_columns(columns)
        except InvalidColumns as error:
            raise ValidationError(str(error)) from None

    @property
    def options(self) -> dict[str, Any]:
        """Return the options with a value.

        :raises InvalidExport: one is invalid
        """
        if not self.is_valid():
            raise InvalidExport(" ".join(f"{self[name].label}: {error}" for name, [error, *_] in self.errors.items()))
        return {name: value for name, value in self.cleaned_data.items() if value}


def requested_file(query: QueryDict, suffix: str, *, organization: Organization) -> Format | Book:
    """Return the file of a request for its first part, or for a later part with the sums of those before.

    :raises InvalidExport: the options are invalid, or the part does not follow another
    """
    if suffix != "csv" or query.keys().isdisjoint(ExportForm.base_fields):
        return FORMATS[suffix]
    options = BookOptions(**{"time_zone": organization.time_zone, **ExportForm(query).options})
    if not options.totals or "from" not in query:
        return Book(options)
    try:
        sums = signing.loads(query.get("sums", ""), salt=SUMS_SALT)
    except signing.BadSignature:
        raise InvalidExport("This part does not follow another. Export again.") from None
    return Book(options, [Total(*values) for values in sums])


def query_of_options(query: QueryDict, file: Format | Book) -> str:
    """Return the end of the query string for the next part: the options, and the sums of the parts before."""
    values = [(name, value) for name in ExportForm.base_fields for value in query.getlist(name)]
    if isinstance(file, Book) and file.options.totals:
        values.append(("sums", signing.dumps(file.totals, salt=SUMS_SALT, compress=True)))
    return "".join(f"&{urlencode([pair])}" for pair in values)


def file_name(organization: Organization, first: date | None, last: date | None, kind: DayKind) -> str:
    """Return the name of a file without its suffix, such as demo-books-2026-10-paid."""
    parts = (slugify(organization.name) or f"organization-{organization.id}", period_name(first, last), kind.value)
    return "-".join(filter(None, parts))


def period_name(first: date | None, last: date | None) -> str:
    """Return the month or the days of a period; an empty text for all days."""
    if not first or not last:
        return f"from-{first}" if first else f"to-{last}" if last else ""
    if first.day == 1 and last == last_of_month(first):
        return f"{first:%Y-%m}"
    return f"{first}" if first == last else f"{first}-to-{last}"
