"""What staff ask of the list of payments: the API's own filters, and what one box searches for."""

import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField

from payments.admin.scope import ScopeForm
from payments.api import parameters
from payments.api.errors import InvalidParameter
from payments.expressions import Beginning
from payments.filters import EVERYTHING, Filter, GivenFilter
from payments.models import CUSTOMER_ID, PAYMENT_ID, PaymentQuerySet, Status

DESCRIPTION_START = Filter(
    PaymentQuerySet.with_description_start,
    read=lambda text: (text,) if len(text) <= Beginning.LENGTH else None,
    must_be=f"how a description begins, in up to {Beginning.LENGTH} characters",
    schema={"type": "string", "maxLength": Beginning.LENGTH},
    example="Order 84820",
)

TOO_WIDE = "What matches could not be found in time. Choose From and To closer to each other."


class SearchForm(ScopeForm):
    """Which payments are to be shown. What is left open is not asked."""

    q = forms.CharField(
        label="Search",
        required=False,
        max_length=Beginning.LENGTH,
        widget=forms.TextInput(
            attrs={"type": "search", "placeholder": "Payment, customer, or how a description begins"}
        ),
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

    selection = EVERYTHING

    def clean(self) -> dict[str, Any]:
        """Read what was given as the API would: what is wrong there is wrong here, in the same words."""
        since, until = self.cleaned_data.get("since"), self.cleaned_data.get("until")
        if since and until and until < since:
            raise ValidationError({"until": "This is before From."})
        try:
            asked = parameters.selection(self.given())
        except InvalidParameter as error:
            raise ValidationError({str(error.field): str(error.detail)}) from None
        begun = [GivenFilter("descriptionStart", DESCRIPTION_START, (self.text,))] if self.is_description else []
        self.selection = asked._replace(filters=(*asked.filters, *begun))
        return self.cleaned_data

    def given(self) -> dict[str, str]:
        """Return the list's parameters that stand for what was filled in."""
        filled = self.cleaned_data
        words = {name: re.sub(r"\s*,\s*", ",", filled.get(name, "")) for name in ("method", "currency")}
        found = {
            "status": ",".join(filled.get("status", ())),
            "method": words["method"],
            "customerId": self.text if re.fullmatch(CUSTOMER_ID, self.text) else "",
            "currency": words["currency"].upper(),
            "createdAt[gte]": f"{since}" if (since := filled.get("since")) else "",
            "createdAt[lte]": f"{until}T23:59:59.999" if (until := filled.get("until")) else "",
        }
        return {name: value for name, value in found.items() if value}

    @property
    def text(self) -> str:
        """Return what is searched for."""
        return str(self.cleaned_data.get("q", ""))

    @property
    def is_payment(self) -> bool:
        """Tell whether it is a payment's id that is searched for."""
        return bool(re.fullmatch(PAYMENT_ID, self.text))

    @property
    def is_description(self) -> bool:
        return bool(self.text) and not self.is_payment and not re.fullmatch(CUSTOMER_ID, self.text)

    @property
    def searched(self) -> list[BoundField]:
        """Return the fields that are always seen."""
        return [self[name] for name in ("organization", "mode", "q")]

    @property
    def filtered(self) -> list[BoundField]:
        """Return the others, but for the status."""
        return [self[name] for name in ("method", "currency", "since", "until")]

    @property
    def narrows(self) -> bool:
        """Tell whether these others are asked for, or cannot be."""
        return bool(self.errors or self.given().keys() - {"customerId"})
