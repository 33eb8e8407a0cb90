"""API keys in the admin: add a key, copy its text once, revoke it. The key's history records both actions."""

import uuid
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import AdminErrorList, AdminForm
from django.contrib.admin.widgets import AdminTextInputWidget
from django.contrib.auth.models import AnonymousUser, User
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from payments.admin.base import ScopedAdmin
from payments.admin.forms import OrganizationField, check_year, initial_access
from payments.admin.scope import Scope
from payments.api.links import Links
from payments.models import ApiKey
from payments.models.api_key import KeyState
from payments.templatetags.texts import local


class UTCField(forms.DateTimeField):
    """A time. Without an offset it is in UTC, not in the time zone of the project."""

    def to_python(self, value: Any) -> datetime | None:
        with timezone.override(UTC):
            return super().to_python(value)


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """The attributes of a new key, and a one-time ID: if the form is sent twice, the database refuses the second key.

    The ID is signed for the user who opened the form. So workers and machines need no shared state, and a user cannot
    use up the form of another user.
    """

    organization = OrganizationField()
    expires_at = UTCField(
        label="Expires at (UTC)",
        required=False,
        help_text="Leave this empty for a key that does not expire.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
    )
    form_id = forms.CharField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = ApiKey
        fields = ("organization", "mode", "scope", "name", "expires_at")
        help_texts = {
            "mode": "A live key is for live payments, a test key for test payments.",
            "scope": "A key either reads payments or imports them. A program that does both needs two keys.",
            "name": "Name the program that uses the key, so that you recognize it later.",
        }
        widgets = {"name": AdminTextInputWidget}

    def __init__(
        self, data: QueryDict | None = None, *, user: User | AnonymousUser, initial: dict[str, Any] | None = None
    ) -> None:
        """The user's organizations are the choices."""
        self.signer = signing.Signer(salt=f"payments.admin.form_ids:{user.pk}")
        super().__init__(data, initial={**(initial or {}), "form_id": self.signer.sign(uuid.uuid4().hex)})
        self.fields["organization"].queryset = Scope.of(user).organizations  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Read the signed ID of the form. If it is invalid, give the form another one, so that it can be sent again."""
        super().clean()
        try:
            form_id = uuid.UUID(self.signer.unsign(self.cleaned_data.get("form_id", "")))
        except signing.BadSignature:
            self.data = {**dict(self.data.items()), "form_id": self.initial["form_id"]}
            raise forms.ValidationError(
                "This form was incomplete, or another user opened it. No key was added. "
                "Check the entries and send the form again."
            ) from None
        return {**self.cleaned_data, "form_id": form_id}

    def clean_expires_at(self) -> datetime | None:
        """Return the time in UTC. The input may have another offset."""
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at is None:
            return None
        check_year(expires_at)
        expires_at = expires_at.astimezone(UTC)
        if expires_at <= timezone.now():
            raise forms.ValidationError("Enter a time in the future.")
        return expires_at


class KeyColumns:
    """The state and the times of a key as columns. Times are those of the organization."""

    @admin.display(description="status")
    def state(self, key: ApiKey) -> SafeString:
        state = key.state(now=timezone.now())
        return format_html('<span class="label {}">{}</span>', state.value, state.label)

    @admin.display(ordering="created_at")
    def created(self, key: ApiKey) -> SafeString | str:
        return time_element(key, key.created_at)

    @admin.display(ordering="last_used_at")
    def last_used(self, key: ApiKey) -> SafeString | str:
        return time_element(key, key.last_used_at)

    @admin.display(ordering="expires_at")
    def expires(self, key: ApiKey) -> SafeString | str:
        """Return the time. For a key that is revoked, "never" would be misleading."""
        return "" if key.revoked_at and not key.expires_at else time_element(key, key.expires_at)

    def revoked(self, key: ApiKey) -> SafeString | str:
        return time_element(key, key.revoked_at)


class StatusFilter(admin.SimpleListFilter):
    """Selects keys by their status."""

    title = parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return KeyState.choices

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """Return the keys that `ApiKey.state` gives this status; all keys for another value."""
        if self.value() == KeyState.ACTIVE:
            return queryset.active(now=Now())
        if self.value() == KeyState.EXPIRED:
            return queryset.filter(expires_at__lte=Now(), revoked_at=None)
        return queryset.exclude(revoked_at=None) if self.value() == KeyState.REVOKED else queryset


@admin.register(ApiKey)
class ApiKeyAdmin(KeyColumns, ScopedAdmin):
    """Keys are added and revoked, and otherwise never change."""

    list_display = ("name", "hint", "organization", "mode", "scope", "state", "last_used", "created", "expires")
    list_select_related = ("organization",)
    list_filter = (StatusFilter, "mode", "scope")
    search_fields = ("name__istartswith", "hint__exact", "organization__name__istartswith")
    ordering = ("-id",)
    fields = ("organization", "mode", "scope", "name", "hint", "state", "created", "last_used", "expires", "revoked")
    readonly_fields = fields[4:]
    add_form_template = "admin/payments/apikey/add_form.html"
    change_form_template = "admin/payments/apikey/change_form.html"

    def get_urls(self) -> list[Any]:
        revoke = self.admin_site.admin_view(self.revoke_view)
        return [path("<int:key_id>/revoke/", revoke, name="payments_apikey_revoke"), *super().get_urls()]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **options: Any) -> HttpResponse:
        """Show the key. Django would save a form as a new key if it has the field `_saveasnew`."""
        if request.method == "POST":
            raise PermissionDenied
        return super().change_view(request, object_id, *args, **options)

    def add_view(self, request: HttpRequest, *_args: Any, **_options: Any) -> HttpResponse:
        """Show the form for a new key; when it is valid, create the key. Django's own view would redirect then."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            initial = {**initial_access(request), **self.get_changeform_initial_data(request)}
            return self.add_form_response(request, ApiKeyForm(user=request.user, initial=initial))
        form = ApiKeyForm(request.POST, user=request.user)
        return self.created_response(request, form) if form.is_valid() else self.add_form_response(request, form)

    def created_response(self, request: HttpRequest, form: ApiKeyForm) -> HttpResponse:
        """Create the key and return a page with its text, which is stored nowhere.

        If the user reloads the page, the browser sends the form again. Then return a page about the existing key.
        """
        try:
            with transaction.atomic():
                key, text = ApiKey.objects.issue(**form.cleaned_data)
                self.log_addition(request, key, [{"added": {}}])
        except IntegrityError:
            key = self.get_queryset(request).select_related("organization").get(form_id=form.cleaned_data["form_id"])
            context = self.page_context(request, "You already created this key", key=key)
            return TemplateResponse(request, "admin/payments/apikey/sent_again.html", context)
        context = self.page_context(request, "Copy your key now", key=key, text=text, api_href=Links.of(request).list)
        return TemplateResponse(request, "admin/payments/apikey/created.html", context)

    def add_form_response(self, request: HttpRequest, form: ApiKeyForm) -> HttpResponse:
        """Return Django's page for adding an object, with our form."""
        fields = [field.name for field in form.visible_fields()]
        admin_form = AdminForm(form, [(None, {"fields": fields})], {}, model_admin=self)
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
        key = get_object_or_404(self.get_queryset(request).select_related("organization"), pk=key_id)
        if request.method == "POST":
            keys: Any = self.get_queryset(request)
            if keys.filter(pk=key.pk).revoke(now=timezone.now()):
                self.log_change(request, key, "Revoked.")
            messages.success(request, f"{key} is revoked. The service refuses requests with this key.")
            return HttpResponseRedirect(reverse("admin:payments_apikey_change", args=[key.pk]))
        context = self.page_context(request, "Revoke this key?", key=key)
        return TemplateResponse(request, "admin/payments/apikey/revoke.html", context)


def time_element(key: ApiKey, moment: datetime | None) -> SafeString | str:
    return "never" if moment is None else local(moment, key.organization.zone)
