"""API keys in the admin: add a key, copy its text once, revoke it. The key's history records both actions."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import AdminErrorList, AdminForm
from django.contrib.admin.widgets import AdminTextInputWidget
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from payments.admin.access_form import OrganizationField
from payments.admin.base import NoChangeAdmin
from payments.links import Links
from payments.models import ApiKey

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[ApiKey]
else:
    ModelForm = forms.ModelForm


class ApiKeyForm(ModelForm):
    """The attributes of a new key."""

    organization = OrganizationField()
    expires_at = forms.DateTimeField(
        label="Expires at (UTC)",
        required=False,
        help_text="Leave this empty for a key that does not expire.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
    )

    class Meta:
        model = ApiKey
        fields = ("organization", "mode", "name", "expires_at")
        help_texts = {
            "mode": "A live key reads live payments, a test key reads test payments.",
            "name": "Name the program that uses the key, so that you recognize it later.",
        }
        widgets = {"name": AdminTextInputWidget}

    def clean_expires_at(self) -> datetime | None:
        """Return the time in UTC. The input may have another offset."""
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at is None:
            return None
        try:
            expires_at = expires_at.astimezone(UTC)
        except OverflowError:
            raise forms.ValidationError("Enter a time in the years 1 to 9999, in UTC.") from None
        if expires_at <= timezone.now():
            raise forms.ValidationError("Enter a time in the future.")
        return expires_at

    def issue_key(self) -> tuple[ApiKey, str]:
        """Create the key; return it and its text, which is not stored."""
        return ApiKey.objects.issue(
            self.cleaned_data["organization"],
            mode=self.cleaned_data["mode"],
            name=self.cleaned_data["name"],
            expires_at=self.cleaned_data["expires_at"],
        )


@admin.register(ApiKey)
class ApiKeyAdmin(NoChangeAdmin):
    """Keys are added and revoked, and otherwise never change."""

    list_display = ("name", "organization", "mode", "state", "created_at", "last_used_at", "expires_at")
    list_select_related = ("organization",)
    list_filter = ("mode",)
    search_fields = ("name__istartswith", "organization__name__istartswith")
    ordering = ("-id",)
    fields = ("organization", "mode", "name", "state", "created_at", "last_used_at", "expires_at", "revoked_at")
    readonly_fields = ("state", "created_at", "last_used_at", "revoked_at")
    add_form_template = "admin/payments/apikey/add_form.html"
    change_form_template = "admin/payments/apikey/change_form.html"

    def get_urls(self) -> list[Any]:
        revoke = self.admin_site.admin_view(self.revoke_view)
        return [path("<int:key_id>/revoke/", revoke, name="payments_apikey_revoke"), *super().get_urls()]

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Refuse filters on the digest: they could find it out character by character."""
        return not lookup.startswith("digest") and super().lookup_allowed(lookup, value, request)

    @admin.display(description="state")
    def state(self, key: ApiKey) -> SafeString:
        return state_label(key)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the form for a new key; when it is valid, create the key and show its text.

        The response to the POST shows the text, because it is stored nowhere. Django's own view would redirect.
        """
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return self.add_form_response(request, ApiKeyForm(initial=self.get_changeform_initial_data(request)))
        form = ApiKeyForm(request.POST)
        if not form.is_valid():
            return self.add_form_response(request, form)
        with transaction.atomic():
            key, text = form.issue_key()
            self.log_addition(request, key, [{"added": {}}])
        context = self.page_context(request, "Copy your key now", key=key, text=text, api_href=Links.of(request).list)
        return TemplateResponse(request, "admin/payments/apikey/created.html", context)

    def add_form_response(self, request: HttpRequest, form: ApiKeyForm) -> HttpResponse:
        """Return Django's page for adding an object, with our form."""
        admin_form = AdminForm(form, [(None, {"fields": list(form.fields)})], {}, model_admin=self)
        context = self.page_context(
            request,
            "Add API key",
            adminform=admin_form,
            errors=AdminErrorList(form, []),
            inline_admin_formsets=[],
            media=self.media + admin_form.media,
        )
        return self.render_change_form(request, context, add=True)

    def revoke_view(self, request: HttpRequest, key_id: int) -> HttpResponse:
        """Ask for confirmation; on POST, revoke the key. This requires the permission to change keys."""
        if not request.user.has_perm("payments.change_apikey"):
            raise PermissionDenied
        key = get_object_or_404(ApiKey.objects.select_related("organization"), pk=key_id)
        if request.method == "POST":
            if ApiKey.objects.filter(pk=key.pk).revoke(now=timezone.now()):
                self.log_change(request, key, "Revoked.")
            messages.success(request, f"{key} is revoked. The service refuses requests with this key.")
            return HttpResponseRedirect(reverse("admin:payments_apikey_change", args=[key.pk]))
        context = self.page_context(request, "Revoke this key?", key=key)
        return TemplateResponse(request, "admin/payments/apikey/revoke.html", context)


def state_label(key: ApiKey) -> SafeString:
    """Return the key's state as coloured text."""
    state = key.state(now=timezone.now())
    return format_html('<span class="label {}">{}</span>', state.value, state.label)
