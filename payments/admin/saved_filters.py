"""Named filters: each user saves searches of the payment list, and opens them for any organization and mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from django import forms
from django.core.exceptions import ValidationError

from payments.admin.list_query import ACCESS_FIELDS, list_query
from payments.models import SavedFilter
from payments.models.staff import QUERY_CHARACTERS_MAX

if TYPE_CHECKING:
    from payments.admin.search import SearchForm

    ModelForm = forms.ModelForm[SavedFilter]
else:
    ModelForm = forms.ModelForm

FILTERS_MAX = 50  # of a user


class SavedFilterLink(NamedTuple):
    """A saved filter, and the query string of its list."""

    name: str
    query: str
    is_current: bool


class SaveFilterForm(ModelForm):
    """Saves a search of the list under a name. A filter of the same name gets the new search."""

    class Meta:
        model = SavedFilter
        fields = ("name",)
        widgets = {"name": forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Name"})}

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if not name.isprintable():
            raise ValidationError("Use printable characters.")
        return name


def find_filter(user_id: int, name: str) -> SavedFilter | None:
    """Return the user's filter with this name."""
    return SavedFilter.objects.filter(user_id=user_id, name=name).first() if name.isprintable() else None


def filter_links(user_id: int, form: SearchForm) -> list[SavedFilterLink]:
    """Return the user's filters by name, with links that keep the organization and mode of the form."""
    access, current = form.access_query, filter_query(form)
    saved = SavedFilter.objects.filter(user_id=user_id).order_by("name")[:FILTERS_MAX]
    return [SavedFilterLink(item.name, f"{access}&{item.query}", item.query == current) for item in saved]


def filter_query(form: SearchForm) -> str:
    """Return the query string of a search, without its organization and mode."""
    return list_query(form, without=ACCESS_FIELDS).urlencode()


def save_filter(user_id: int, search: SearchForm, *, name: str) -> None:
    """Save a search under a name.

    :raises ValidationError: the name or the search cannot be saved
    """
    text = filter_query(search)
    named = SaveFilterForm({"name": name})
    if not search.is_valid() or not text:
        raise ValidationError("Choose a filter or enter a search before you save it.")
    if len(text) > QUERY_CHARACTERS_MAX:
        raise ValidationError("This search is too long to be saved. Remove some filters.")
    if not named.is_valid():
        raise ValidationError([f"Name: {error}" for error in named.errors["name"]])
    others = SavedFilter.objects.filter(user_id=user_id).exclude(name=named.cleaned_data["name"])
    if others.count() >= FILTERS_MAX:
        raise ValidationError(f"You have {FILTERS_MAX} saved filters. Delete one before you save another.")
    values = {"user_id": user_id, "name": named.cleaned_data["name"]}
    SavedFilter.objects.update_or_create(**values, defaults={"query": text})
