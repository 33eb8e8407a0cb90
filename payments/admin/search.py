"""The search form of the payment list: the API's filters, and a search box (search_text.py)."""

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField

from payments.admin.access_form import AccessForm
from payments.admin.search_text import InvalidSearch, Search, read_search
from payments.filters import EVERYTHING, InvalidSelection, parse_selection
from payments.models import Status

SEARCH_CHARACTERS_MAX = 200

TIMED_OUT = "The search timed out. Choose a shorter period with From and To."


class SearchForm(AccessForm):
    """Selects the payments of a list. Empty fields do not restrict it."""

    q = forms.CharField(
        label="Search",
        required=False,
        max_length=SEARCH_CHARACTERS_MAX,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": "Order number, amount, card, customer, date"}),
    )
    status = forms.MultipleChoiceField(choices=Status.choices, required=False, widget=forms.CheckboxSelectMultiple)
    method = forms.CharField(
        required=False, max_length=200, widget=forms.TextInput(attrs={"placeholder": "creditcard, ideal"})
    )
    currency = forms.CharField(
        required=False, max_length=200, widget=forms.TextInput(attrs={"placeholder": "EUR, USD"})
    )
    since = forms.DateField(label="From", required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(label="To", required=False, widget=forms.DateInput(attrs={"type": "date"}))

    selection = EVERYTHING  # the validated filters; `clean` sets them
    search = Search()  # the meaning of the search text; `clean_q` sets it

    def clean_q(self) -> str:
        text = str(self.cleaned_data["q"])
        if text.strip():
            try:
                self.search = read_search(text)
            except InvalidSearch as error:
                raise ValidationError(str(error)) from None
        return text

    def clean(self) -> dict[str, Any]:
        """Validate the filters as the API does, with its error texts, and set `selection`."""
        since, until = self.cleaned_data.get("since"), self.cleaned_data.get("until")
        if since and until and until < since:
            raise ValidationError({"until": "Enter a date on or after From."})
        try:
            selection = parse_selection(self.api_parameters())
        except InvalidSelection as error:
            # The page puts the field's label before the text.
            text = str(error).removeprefix(f"{error.field} ")
            raise ValidationError({error.field: text}) from None
        searched = parse_selection(self.search.parameters).filters
        renamed = (applied._replace(name=f"search {applied.name}") for applied in searched)
        self.selection = selection._replace(filters=(*selection.filters, *renamed))
        return self.cleaned_data

    def api_parameters(self) -> dict[str, str]:
        """Return the filled-in fields as parameters of the API's list."""
        values = self.cleaned_data
        since, until = values.get("since"), values.get("until")
        parameters = {
            "status": ",".join(values.get("status", ())),
            "method": without_spaces_at_commas(values.get("method", "")),
            "currency": without_spaces_at_commas(values.get("currency", "")).upper(),
            "createdAt[gte]": f"{since}" if since else "",
            "createdAt[lte]": f"{until}T23:59:59.999" if until else "",
        }
        return {name: value for name, value in parameters.items() if value}

    @property
    def search_fields(self) -> list[BoundField]:
        """Return the fields that the page always shows."""
        return [self[name] for name in ("organization", "mode", "q")]

    @property
    def filter_fields(self) -> list[BoundField]:
        """Return the fields of the filter section except the status, whose checkboxes need their own markup."""
        return [self[name] for name in ("method", "currency", "since", "until")]

    @property
    def opens_filters(self) -> bool:
        """Return whether the page opens the filter section: one of its fields is set, or the form has an error."""
        return bool(self.errors or self.api_parameters())


def without_spaces_at_commas(text: str) -> str:
    return re.sub(r"\s*,\s*", ",", text)
