"""The switcher in the header of all pages: it selects an organization and a mode, and remembers them for the user."""

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import Resolver404, get_script_prefix, resolve, reverse

from payments.admin.forms import MENU_CHOICES_MAX, AccessForm, access_query
from payments.admin.preferences import read_preferences, remember_access
from payments.admin.scope import Scope
from payments.admin.sign_in.pages import safe_next
from payments.models import Access, Mode, Organization

FILTERED_CHOICES_MIN = 11  # fewer need no search box
ID_DIGITS_MAX = 18

# The pages whose address has an organization and a mode. The list's position and page number belong to one of them.
RECORDS = ("payments_paymentread_changelist", "payments_importrun_changelist")
PAGES = frozenset({"index", "month_report", "payments_payment_changelist", *RECORDS})
POSITION = ("from", "before")


@dataclass(frozen=True)
class Switcher:
    """The choices of a user. They are read when a template needs them."""

    request: HttpRequest
    modes = Mode.choices

    @cached_property
    def scope(self) -> Scope:
        return Scope.of(self.request.user)

    @cached_property
    def listed(self) -> list[Organization]:
        """Return one more organization than the menu has, if there are more."""
        return list(self.scope.organizations[: MENU_CHOICES_MAX + 1])

    @property
    def choices(self) -> list[Organization]:
        return self.listed[:MENU_CHOICES_MAX]

    @property
    def is_complete(self) -> bool:
        return len(self.listed) <= MENU_CHOICES_MAX

    @property
    def has_search(self) -> bool:
        return len(self.listed) >= FILTERED_CHOICES_MIN


class FindForm(forms.Form):
    """Finds organizations by a part of their name, or by their ID."""

    q = forms.CharField(
        label="Name or ID", max_length=200, widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off"})
    )

    def find(self, scope: Scope) -> QuerySet[Organization]:
        text = self.cleaned_data["q"]
        selected = Q(name__icontains=text)
        if text.isascii() and text.isdecimal() and len(text) <= ID_DIGITS_MAX:
            selected |= Q(id=int(text))
        return scope.organizations.filter(selected)


def switch_view(request: HttpRequest) -> HttpResponse:
    """POST selects an organization and a mode. GET finds an organization, also without a script."""
    if not request.user.has_perm("payments.view_payment"):
        raise PermissionDenied
    scope = Scope.of(request.user)
    if request.method == "POST":
        return switch(request, scope)
    form = FindForm(request.GET, label_suffix="")
    context = {
        **admin.site.each_context(request),
        "title": "Choose an organization",
        "form": form,
        "next": safe_next(request, request.GET.get("next")),
        "found": form.find(scope)[:MENU_CHOICES_MAX] if form.is_valid() else [],
    }
    return TemplateResponse(request, "admin/switch.html", context)


def switch(request: HttpRequest, scope: Scope) -> HttpResponseRedirect:
    """Remember the selection, and return to the page `next` with it. The missing field keeps its last value."""
    preferences = read_preferences(request)
    form = AccessForm.from_query(request.POST, scope=scope, preferences=preferences)
    address = safe_next(request, request.POST.get("next"))
    if not form.is_valid():
        messages.error(request, "This organization does not exist. Choose another one.")
        return HttpResponseRedirect(address)
    remember_access(preferences, form.access)
    return HttpResponseRedirect(address_with(form.access, address))


def address_with(access: Access, address: str) -> str:
    """Return the address of the same page for an organization and a mode.

    From a payment, it is the list; from a page that is not about one organization, it is the start page.
    """
    parts = urlsplit(address)
    name = page_name(parts.path)
    if name not in PAGES:
        page = "payments_payment_changelist" if name.startswith("payments_payment_") else "index"
        return f"{reverse(f'admin:{page}')}?{access_query(access)}"
    query = QueryDict(parts.query, mutable=True)
    for parameter in POSITION:
        query.pop(parameter, None)
    query["organization"], query["mode"] = str(access.organization_id), access.mode
    return f"{parts.path}?{query.urlencode()}"


def page_name(address: str) -> str:
    try:
        return resolve(f"/{address.removeprefix(get_script_prefix())}").url_name or ""
    except Resolver404:
        return ""
