"""Organizations in the admin: their names, their API keys and a link to their payments."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from payments.admin.base import NoDeleteAdmin
from payments.admin.keys import state_label
from payments.models import AccessState, ApiKey, Organization


class OrganizationForm(forms.ModelForm):  # type: ignore[type-arg]
    """An organization's ID and name."""

    class Meta:
        model = Organization
        fields = ("id", "name")
        labels = {"id": "ID"}
        help_texts = {"id": "The organizationId of its payments. It never changes."}


class KeyInline(admin.TabularInline):  # type: ignore[type-arg]
    """The keys of an organization, with links to their pages."""

    model = ApiKey
    template = "admin/payments/organization/keys.html"
    fields = readonly_fields = ("name_link", "hint", "mode", "state", "created_at", "last_used_at", "expires_at")
    ordering = ("-id",)
    extra = 0
    can_delete = False

    @admin.display(description="name")
    def name_link(self, key: ApiKey) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("admin:payments_apikey_change", args=[key.pk]), key.name)

    @admin.display(description="state")
    def state(self, key: ApiKey) -> SafeString:
        return state_label(key)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Organization)
class OrganizationAdmin(NoDeleteAdmin):
    """Organizations can be added and renamed. Their ID never changes, because payments contain it."""

    form = OrganizationForm
    list_display = ("ungrouped_id", "name", "active_keys", "payments_link")
    list_display_links = ("ungrouped_id", "name")
    ordering = ("name", "id")
    search_fields = ("name__istartswith", "id__exact")
    inlines = (KeyInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Organization]:
        active = Q(keys__in=ApiKey.objects.active(now=Now()))
        organizations: QuerySet[Organization] = super().get_queryset(request)
        return organizations.annotate(active_key_count=Count("keys", filter=active))

    def get_fields(self, request: HttpRequest, obj: Organization | None = None) -> tuple[str, ...]:
        return ("id", "name") if obj is None else ("ungrouped_id", "name", "last_imports")

    def get_readonly_fields(self, request: HttpRequest, obj: Organization | None = None) -> tuple[str, ...]:
        return () if obj is None else ("ungrouped_id", "last_imports")

    @admin.display(description="ID", ordering="id")
    def ungrouped_id(self, organization: Organization) -> str:
        """Return the ID as a text, to which Django does not add separators of thousands."""
        return str(organization.pk)

    @admin.display(description="last imports")
    def last_imports(self, organization: Organization) -> SafeString:
        """Return a line for each mode: when the last import ended, and how many payments it wrote."""
        states = AccessState.objects.filter(organization=organization, imported_at__isnull=False).order_by("mode")
        lines = ((state.mode, f"{state.imported_at:%Y-%m-%d %H:%M}", state.imported_payments) for state in states)
        text = format_html_join(mark_safe("<br>"), "{}: {} UTC, {} payments new or changed", lines)
        return text or mark_safe("None yet")

    @admin.display(description="active keys", ordering="active_key_count")
    def active_keys(self, organization: Any) -> Any:
        return organization.active_key_count

    @admin.display(description="payments")
    def payments_link(self, organization: Organization) -> SafeString:
        """Return a link. A method named `payments`, as the relation, would make the column sortable by it."""
        address = reverse("admin:payments_payment_changelist")
        return format_html('<a href="{}?organization={}">View payments</a>', address, organization.id)
