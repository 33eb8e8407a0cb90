"""The search form of the payment list: the API's filters, their order, and a search box (search_box.py)."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField

from payments.admin.forms import AccessForm, PeriodFields, check_today
from payments.admin.payments.search_box import Search, read_search
from payments.admin.payments.search_parts import InvalidSearch, decimal
from payments.admin.periods import DateRange, current_day
from payments.database.limits import optional_statements
from payments.listing.filters import EVERYTHING, InvalidSelection, day_parameters, parse_selection
from payments.models import DayKind, Payment, SequenceType, Status
from payments.models.choices import method_label
from payments.models.ordering import NEWEST_FIRST

# Each word may be entered with any of these between them.
SEPARATORS = re.compile(r"[\s,]+")


class WordsInput(forms.CheckboxSelectMultiple):
    """Checkboxes for the known words, and a text input for others. All of them have the same name.

    The value is a list of words: `?method=ideal&method=paypal, eps` has three. The list's filters validate each word.
    """

    template_name = "admin/words_input.html"

    def __init__(self, others_label: str) -> None:
        super().__init__()
        self.others_label = others_label

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return list(dict.fromkeys(filter(None, SEPARATORS.split(" ".join(data.getlist(name))))))

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        known = [str(word) for word, _ in self.choices]
        others = ", ".join(word for word in value or () if word not in known)
        return {**super().get_context(name, value, attrs), "others": others, "others_label": self.others_label}


UTC = ZoneInfo("UTC")

SEARCH_CHARACTERS_MAX = 200
AMOUNT_CHARACTERS_MAX = 20

KNOWN_PAYMENTS = 1000  # whose methods and currencies are choices
KNOWN_WORDS_MAX = 12  # of each kind

SEARCH_EXAMPLES = "84820, 8482*, 42.32 EUR, >100 EUR, card 4242, L. Turner, Tuesday, 24 Nov, order:84820, failed"

TIMED_OUT = "The search timed out. Choose a shorter period."

REVERSED_AMOUNTS = "The upper bound of the amount must be at or above the lower bound."

EXACT = "exact"

# The fields of each menu.
MENUS = {
    "Status": ("status",),
    "Method": ("method",),
    "Amount": ("currency", "amount_min", "amount_max"),
    "Type": ("sequence",),
    "Period": ("period", "since", "until", "by", "sort"),
}

SORT_CHOICES = (("desc", "Newest first"), ("asc", "Oldest first"))

# Parameters of the API's list, and the form's field for each.
FIELDS: Mapping[str, str] = {
    "status": "status",
    "method": "method",
    "currency": "currency",
    "sequenceType": "sequence",
    "amount[gte]": "amount_min",
    "amount[lte]": "amount_max",
    "sort": "sort",
}


def amount_field(label: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"inputmode": "decimal", "placeholder": "10.00"})
    return forms.CharField(label=label, required=False, max_length=AMOUNT_CHARACTERS_MAX, widget=widget)


class Menu(NamedTuple):
    """A menu of the form. The page opens it if a field has an error."""

    title: str
    fields: Sequence[BoundField]
    is_open: bool


class SearchForm(PeriodFields, AccessForm):
    """Selects the payments of a list. Empty fields do not restrict it."""

    today = forms.DateField(required=False, widget=forms.HiddenInput, validators=[check_today])
    q = forms.CharField(
        label="Search",
        required=False,
        max_length=SEARCH_CHARACTERS_MAX,
        widget=forms.TextInput(
            attrs={
                "type": "search",
                "aria-label": "Search",
                "placeholder": "Order number, amount, card, name, date",
                "title": f"Examples: {SEARCH_EXAMPLES}. Press / to come here.",
            }
        ),
    )
    sort = forms.ChoiceField(label="Order", choices=SORT_CHOICES, required=False)
    status = forms.MultipleChoiceField(choices=Status.choices, required=False, widget=forms.CheckboxSelectMultiple)
    method = forms.Field(required=False, widget=WordsInput("Other methods"))
    currency = forms.Field(required=False, widget=WordsInput("Other currencies"))
    sequence = forms.MultipleChoiceField(
        label="Type", choices=SequenceType.choices, required=False, widget=forms.CheckboxSelectMultiple
    )
    amount_min = amount_field("Smallest amount")
    amount_max = amount_field("Largest amount")
    count = forms.ChoiceField(choices=[(EXACT, EXACT)], required=False, widget=forms.HiddenInput)  # however long

    selection = EVERYTHING  # the validated filters and the order; `clean` sets them
    search = Search()  # the meaning of the search text; `clean_q` sets it

    def clean_q(self) -> str:
        text = str(self.cleaned_data["q"])
        if text.strip():
            try:
                self.search = read_search(text, today=self.current_day, zone=self.zone)
            except InvalidSearch as error:
                raise ValidationError(str(error)) from None
        return text

    def clean_currency(self) -> list[str]:
        return [code.upper() for code in self.cleaned_data["currency"]]

    def clean_amount_min(self) -> str:
        return clean_amount(self.cleaned_data["amount_min"])

    def clean_amount_max(self) -> str:
        return clean_amount(self.cleaned_data["amount_max"])

    def clean(self) -> dict[str, Any]:
        """Validate the filters as the API does, with its error texts, and set `selection`."""
        values = super().clean()
        if not values.get("currency") and (values.get("amount_min") or values.get("amount_max")):
            self.add_error("currency", "Choose a currency for the amount.")
        if self.errors:
            return self.cleaned_data
        try:
            selection = parse_selection(self.api_parameters())
        except InvalidSelection as error:
            raise ValidationError(self.field_error(error)) from None
        try:
            searched = parse_selection(self.search.parameters).filters
        except InvalidSelection as error:
            raise ValidationError({"q": REVERSED_AMOUNTS if "amount" in error.field else str(error)}) from None
        renamed = (applied._replace(name=f"search {applied.name}") for applied in searched)
        self.selection = selection._replace(filters=(*selection.filters, *renamed))
        return self.cleaned_data

    def field_error(self, error: InvalidSelection) -> dict[str, str]:
        """Return the error of a parameter as the error of its field. The page puts the field's label before it."""
        text = str(error).removeprefix(f"{error.field} ")
        text = text.replace("amount[gte]", str(self.fields["amount_min"].label))
        return {FIELDS[error.field]: text}

    def api_parameters(self) -> dict[str, str]:
        """Return the filled-in fields as parameters of the API's list. The form must be valid."""
        values = self.cleaned_data
        parameters = {
            parameter: ",".join(value) if isinstance(value := values[name], list) else value
            for parameter, name in FIELDS.items()
        }
        parameters |= day_parameters(self.kind.field, *self.days, zone=self.zone)
        return {name: value for name, value in parameters.items() if value}

    @property
    def kind(self) -> DayKind:
        """Return the kind of day. Without a period, the list also has payments without a paid day."""
        return super().kind if self.days != DateRange() else DayKind.CREATED

    @property
    def zone(self) -> ZoneInfo:
        """Return the organization's time zone; UTC without an organization, which is an error of the form."""
        organization = self.cleaned_data.get("organization")
        return organization.zone if organization else UTC

    @cached_property
    def current_day(self) -> date:
        """Return the day that periods end with: `today` of an export in parts, otherwise the present day."""
        return self.cleaned_data.get("today") or current_day(self.zone)

    @property
    def days(self) -> DateRange:
        return self.date_range(today=self.current_day)

    @property
    def has_filters(self) -> bool:
        return bool(self.selection.filters or self.search.groups)

    def offer_known_words(self) -> None:
        """Offer the methods and currencies of the newest payments as choices; none if the database is too slow.

        Users can enter others. The organization and mode must be valid. Cost: one query for 1,000 payments.
        """
        newest = Payment.objects.visible_to(self.access).order_by(*NEWEST_FIRST)
        pairs: list[tuple[str, str]] = []
        with optional_statements():
            pairs = list(newest.values_list("method", "amount_currency")[:KNOWN_PAYMENTS])
        self.fields["method"].widget.choices = most_frequent(method for method, _ in pairs)
        self.fields["currency"].widget.choices = most_frequent(currency for _, currency in pairs)

    @property
    def menus(self) -> Iterator[Menu]:
        """Yield the menus of filters, and the one of periods, whose title is the selected period."""
        for title, names in MENUS.items():
            fields = [self[name] for name in names]
            period = dict(self.fields["period"].choices).get(self.data.get("period"))  # type: ignore[attr-defined]
            shown = f"+ {title}" if title != "Period" else str(period or title)
            yield Menu(shown, fields, any(field.errors for field in fields))


def clean_amount(text: str) -> str:
    """Return an amount with a decimal point: `10.50` for `10,50`. Other texts stay as they are."""
    return decimal(text) if re.fullmatch("-?[0-9]+([.,][0-9]+)*", text) else text


def most_frequent(words: Iterable[str]) -> list[tuple[str, str]]:
    known = sorted(word for word, _ in Counter(words).most_common(KNOWN_WORDS_MAX) if word)
    return [(word, method_label(word)) for word in known]
