"""The forms of the payment list that change something: saved filters and columns. Each leads back to the list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.urls import path, reverse

from payments.admin.columns import chosen_columns
from payments.admin.list_query import list_query
from payments.admin.preferences import write
from payments.admin.saved_filters import find_filter, save_filter
from payments.admin.search import SearchForm

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite
    from django.urls import URLPattern


def action_urls(site: AdminSite) -> list[URLPattern]:
    """Return the URLs of the forms."""
    return [
        path("save-filter", site.admin_view(save_filter_view), name="payments_payment_save_filter"),
        path("delete-filter", site.admin_view(delete_filter_view), name="payments_payment_delete_filter"),
        path("columns", site.admin_view(columns_view), name="payments_payment_columns"),
    ]


def save_filter_view(request: HttpRequest) -> HttpResponseRedirect:
    """Save the search of the field `query` under the name of the field `name`."""
    user_id = require_permission_to_post(request)
    search = posted_search(request)
    name = request.POST.get("name", "")
    try:
        save_filter(user_id, search, name=name)
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    else:
        messages.success(request, f"The filter “{name.strip()}” was saved.")
    return redirect_to_list(search)


def delete_filter_view(request: HttpRequest) -> HttpResponseRedirect:
    """Delete the user's filter whose name is in the field `name`."""
    user_id = require_permission_to_post(request)
    saved = find_filter(user_id, request.POST.get("name", ""))
    if saved is None:
        messages.error(request, "This filter does not exist any more.")
    else:
        saved.delete()
        messages.success(request, f"The filter “{saved.name}” was deleted.")
    return redirect_to_list(posted_search(request))


def columns_view(request: HttpRequest) -> HttpResponseRedirect:
    """Store the columns of the repeated field `column`, or the default columns if the field `default` is sent."""
    user_id = require_permission_to_post(request)
    columns: Any = None if "default" in request.POST else chosen_columns(request.POST.getlist("column"))
    write(user_id, columns=columns)
    return redirect_to_list(posted_search(request))


def require_permission_to_post(request: HttpRequest) -> int:
    """Return the ID of the user, who sends a form and may view payments."""
    if request.method != "POST" or not request.user.has_perm("payments.view_payment"):
        raise PermissionDenied
    return cast("int", request.user.pk)


def posted_search(request: HttpRequest) -> SearchForm:
    """Return the list's form with the query string in the field `query`."""
    return SearchForm.from_query(QueryDict(request.POST.get("query", "")))


def redirect_to_list(search: SearchForm) -> HttpResponseRedirect:
    return HttpResponseRedirect(f"{reverse('admin:payments_payment_changelist')}?{list_query(search).urlencode()}")
