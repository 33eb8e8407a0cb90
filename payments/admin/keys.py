"""API keys in the admin: made, shown this once, and revoked. Each of it stands in the key's history."""

from datetime import UTC
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from payments.admin.base import UnchangedAdmin
from payments.admin.scope import OrganizationField
from payments.links import Addresses
from payments.models import ApiKey

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[ApiKey]
else:
    ModelForm = forms.ModelForm


class ApiKeyForm(ModelForm):
    """What a key is for."""

    organization = OrganizationField()
    expires_at = forms.DateTimeField(
        required=False,
        help_text="In UTC. Without, it does not expire.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
    )

    class Meta:
        model = ApiKey
        fields = ("organization", "mode", "name", "expires_at")
        help_texts = {
            "mode": "Live payments moved money, test payments did not. A key shows either of them.",
            "name": "Who uses it, and where: what people know it by.",
        }

    def clean_expires_at(self) -> Any:
        """Return the moment in UTC, whatever offset it was given with."""
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is None:
            return None
        try:
            moment = expires_at.astimezone(UTC)
        except OverflowError:
            raise forms.ValidationError("This is beyond the calendar.") from None
        if moment <= timezone.now():
            raise forms.ValidationError("This is not in the future.")
        return moment


@admin.register(ApiKey)
class ApiKeyAdmin(UnchangedAdmin):
    """A key is made for an organization and a mode, and is the same until it is revoked."""

    form = ApiKeyForm
    list_display = ("name", "organization", "mode", "state", "created_at", "last_used_at", "expires_at")
    list_select_related = ("organization",)
    list_filter = ("mode",)
    search_fields = ("name__istartswith", "organization__name__istartswith")
    ordering = ("-id",)
    add_fields = ("organization", "mode", "name", "expires_at")
    fields = ("organization", "mode", "name", "state", "created_at", "last_used_at", "expires_at", "revoked_at")
    readonly_fields = ("state", "created_at", "last_used_at", "revoked_at")
    add_form_template = "admin/payments/apikey/add_form.html"
    change_form_template = "admin/payments/apikey/change_form.html"

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> tuple[str, ...]:
        return self.add_fields if obj is None else self.fields

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Let nobody ask how a digest begins."""
        return not lookup.startswith("digest") and super().lookup_allowed(lookup, value, request)

    @admin.display(description="state")
    def state(self, key: ApiKey) -> SafeString:
        return state_label(key)

    def get_urls(self) -> list[Any]:
        revoke = self.admin_site.admin_view(self.revoke_view)
        return [path("<int:key_id>/revoke/", revoke, name="payments_apikey_revoke"), *super().get_urls()]

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:  # noqa: FBT001
        """Make a key as the command does, and keep its text until the answer to this request has shown it."""
        key, text = ApiKey.objects.issue(obj.organization, mode=obj.mode, name=obj.name, expires_at=obj.expires_at)
        obj.pk = key.pk
        vars(request)["key_text"] = text

    def response_add(self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None) -> HttpResponse:
        """Show the key in the answer itself: it is stored nowhere from where another page could fetch it."""
        shown = {"key": obj, "text": vars(request)["key_text"], "href": Addresses.of(request).list}
        context = self.context(request, "Keep this key now", shown)
        return TemplateResponse(request, "admin/payments/apikey/made.html", context)

    def revoke_view(self, request: HttpRequest, key_id: int) -> HttpResponse:
        """Ask whether the key shall be revoked, and do it, for who may change keys: nothing else of them changes."""
        if not request.user.has_perm("payments.change_apikey"):
            raise PermissionDenied
        key = get_object_or_404(ApiKey.objects.select_related("organization"), pk=key_id)
        if request.method == "POST":
            if ApiKey.objects.filter(pk=key.pk).revoke(now=timezone.now()):
                self.log_change(request, key, "Revoked.")
            messages.success(request, f"{key} is revoked: the next request that shows it is refused.")
            return HttpResponseRedirect(reverse("admin:payments_apikey_change", args=[key.pk]))
        context = self.context(request, "Revoke this key?", {"key": key})
        return TemplateResponse(request, "admin/payments/apikey/revoke.html", context)


def state_label(key: ApiKey) -> SafeString:
    state = key.state(now=timezone.now())
    return format_html('<span class="label {}">{}</span>', state.value, state.label)
