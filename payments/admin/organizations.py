"""Organizations in the admin: to name, with their keys."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from payments.admin.base import KeptAdmin
from payments.admin.keys import state_label
from payments.models import ApiKey, Organization

if TYPE_CHECKING:
    TabularInline = admin.TabularInline[Any, Any]
else:
    TabularInline = admin.TabularInline


class KeyInline(TabularInline):
    """The keys of an organization, each with its page."""

    model = ApiKey
    fields = readonly_fields = ("key", "mode", "state", "created_at", "last_used_at", "expires_at")
    ordering = ("-id",)
    extra = 0
    can_delete = False

    @admin.display(description="name")
    def key(self, key: ApiKey) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("admin:payments_apikey_change", args=[key.pk]), key.name)

    @admin.display(description="state")
    def state(self, key: ApiKey) -> SafeString:
        return state_label(key)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Organization)
class OrganizationAdmin(KeptAdmin):
    """An organization's id is its payments' `organizationId`: once given, it stays."""

    fields = ("id", "name")
    list_display = ("id", "name", "usable_keys", "payments")
    list_display_links = ("id", "name")
    ordering = ("name", "id")
    search_fields = ("name__istartswith", "id__exact")
    inlines = (KeyInline,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Organization]:
        usable = Q(keys__in=ApiKey.objects.usable(now=Now()))
        found: QuerySet[Organization] = super().get_queryset(request)
        return found.annotate(usable_keys=Count("keys", filter=usable))

    def get_readonly_fields(self, request: HttpRequest, obj: Organization | None = None) -> tuple[str, ...]:
        return () if obj is None else ("id",)

    def save_model(self, request: HttpRequest, obj: Organization, form: Any, change: bool) -> None:  # noqa: FBT001
        """Write what was edited alone: an import may have renewed the revision meanwhile."""
        obj.save(update_fields=form.changed_data if change else None)

    @admin.display(description="usable keys", ordering="usable_keys")
    def usable_keys(self, organization: Organization) -> int:
        return int(vars(organization)["usable_keys"])

    @admin.display(description="payments")
    def payments(self, organization: Organization) -> SafeString:
        address = reverse("admin:payments_payment_changelist")
        return format_html('<a href="{}?organization={}">Show payments</a>', address, organization.id)
