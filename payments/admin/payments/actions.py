"""The forms of the payment list that change something: saved filters, columns and options of an export.

Each user saves searches of the list under a name, and opens them for any organization and mode. A filter that is shared
appears for all users who see the organization.
"""

import re
from http import HTTPStatus
from typing import Any, NamedTuple, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse

from payments.admin.base import error_text
from payments.admin.payments.downloads import ExportForm, InvalidExport
from payments.admin.payments.form import SearchForm
from payments.admin.payments.query import ACCESS_FIELDS, list_query
from payments.admin.preferences import chosen_columns, write_preferences
from payments.admin.scope import Scope
from payments.models import SavedFilter

FILTERS_MAX = 50  # of a user
LINKS_MAX = 200

ADMINISTER = "payments.change_organization"  # of the role that may delete filters that others share


class SavedFilterLink(NamedTuple):
    """A saved filter, and the query string of its list."""

    item: SavedFilter
    query: str
    is_current: bool
    may_delete: bool


class SaveFilterForm(forms.ModelForm):  # type: ignore[type-arg]
    """Saves a search of the list under a name. A filter of the same name gets the new search."""

    is_shared = forms.BooleanField(label="Share with all who see this organization", required=False)

    class Meta:
        model = SavedFilter
        fields = ("name",)
        widgets = {"name": forms.TextInput(attrs={"autocomplete": "off", "placeholder": "Name"})}

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if not name.isprintable():
            raise ValidationError("Use printable characters.")
        return name


def filter_links(user: User | AnonymousUser, form: SearchForm) -> list[SavedFilterLink]:
    """Return the user's and the organization's filters by name. Links keep the organization and mode of the form."""
    access, current = form.access_query, filter_query(form)
    own = Q(user_id=user.pk, organization_id=None)
    saved = SavedFilter.objects.filter(own | Q(organization_id=form.access.organization_id)).order_by("name", "pk")
    is_administrator = user.has_perm(ADMINISTER)
    return [
        SavedFilterLink(
            item, f"{access}&{item.query}", item.query == current, is_administrator or item.user_id == user.pk
        )
        for item in saved[:LINKS_MAX]
    ]


def filter_query(form: SearchForm) -> str:
    return list_query(form, without=(*ACCESS_FIELDS, "count")).urlencode()


def save_filter_view(request: HttpRequest) -> HttpResponseRedirect:
    """Save the search of the field `query` under the name of the field `name`."""
    user_id = require_permission_to_post(request)
    search = posted_search(request)
    try:
        saved, is_new = save_filter(user_id, search, SaveFilterForm(request.POST))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(request, f"The saved filter “{saved.name}” was {'added' if is_new else 'replaced'}.")
    return redirect_to_list(search)


def save_filter(user_id: int, search: SearchForm, named: SaveFilterForm) -> tuple[SavedFilter, bool]:
    """Save a search under a name. Return the filter, and whether it is a new one.

    :raises ValidationError: the name or the search cannot be saved
    """
    query = filter_query(search)
    if not search.is_valid() or not query:
        raise ValidationError("Choose a filter or enter a search before you save it.")
    if not named.is_valid():
        raise ValidationError([f"Name: {error}" for error in named.errors["name"]])
    key: dict[str, Any] = {"name": named.cleaned_data["name"], "organization_id": None, "user_id": user_id}
    if named.cleaned_data["is_shared"]:
        key = {"name": named.cleaned_data["name"], "organization_id": search.access.organization_id}
    existing = SavedFilter.objects.filter(**key).first()
    if existing and existing.user_id != user_id:
        raise ValidationError("Another user shares a saved filter of this name. Choose another name.")
    if not existing and SavedFilter.objects.filter(user_id=user_id).count() >= FILTERS_MAX:
        raise ValidationError(f"You have {FILTERS_MAX} saved filters. Delete one before you save another.")
    values = {"query": query}
    return SavedFilter.objects.update_or_create(**key, defaults=values, create_defaults={**values, "user_id": user_id})


def delete_filter_view(request: HttpRequest) -> HttpResponseRedirect:
    """Delete the filter whose ID is in the field `id`: one of the user, or for an administrator a shared one."""
    user_id = require_permission_to_post(request)
    number = request.POST.get("id", "")
    deletable = SavedFilter.objects.filter(user_id=user_id)
    if request.user.has_perm(ADMINISTER):
        deletable |= Scope.of(request.user).limit(SavedFilter.objects.exclude(organization_id=None))
    saved = deletable.filter(pk=number).first() if re.fullmatch("[0-9]{1,18}", number) else None
    if saved is None:
        messages.error(request, "This saved filter does not exist any more.")
    else:
        saved.delete()
        messages.success(request, f"The saved filter “{saved.name}” was deleted.")
    return redirect_to_list(posted_search(request))


def columns_view(request: HttpRequest) -> HttpResponseRedirect:
    """Store the columns of the repeated field `column`, or the default columns if the field `default` is sent."""
    user_id = require_permission_to_post(request)
    columns: Any = None if "default" in request.POST else chosen_columns(request.POST.getlist("column"))
    write_preferences(user_id, columns=columns)
    return redirect_to_list(posted_search(request))


def export_options_view(request: HttpRequest) -> HttpResponse:
    """Store the options of an export, before the page's script requests it."""
    user_id = require_permission_to_post(request)
    try:
        write_preferences(user_id, export_options=ExportForm(request.POST).options)
    except InvalidExport as error:
        return error_text(str(error), HTTPStatus.BAD_REQUEST)
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


def require_permission_to_post(request: HttpRequest) -> int:
    """Return the ID of the user, who sends a form and may view payments."""
    if request.method != "POST" or not request.user.has_perm("payments.view_payment"):
        raise PermissionDenied
    return cast("int", request.user.pk)


def posted_search(request: HttpRequest) -> SearchForm:
    return SearchForm.from_query(QueryDict(request.POST.get("query", "")), scope=Scope.of(request.user))


def redirect_to_list(search: SearchForm) -> HttpResponseRedirect:
    return HttpResponseRedirect(f"{reverse('admin:payments_payment_changelist')}?{list_query(search).urlencode()}")
