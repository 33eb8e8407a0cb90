"""The admin: payments to read, organizations to name, keys to see. Whatever has come in stays as it came."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from payments.keyset import NEWEST_FIRST
from payments.models import ApiKey, Organization, Payment

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class KeptAdmin(ModelAdmin):
    """Nothing is deleted here."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(KeptAdmin):
    """Nothing is written here either."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    """Payments come in by import alone."""

    list_display = ("id", "created_at", "organization", "mode", "status", "method", "amount")
    list_select_related = ("organization",)
    ordering = NEWEST_FIRST
    show_full_result_count = False


@admin.register(Organization)
class OrganizationAdmin(KeptAdmin):
    """An organization's id is its payments' `organizationId`: once given, it stays."""

    list_display = ("id", "name")

    def get_readonly_fields(self, request: HttpRequest, obj: Organization | None = None) -> tuple[str, ...]:
        return () if obj is None else ("id",)


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Keys are made and revoked by command: a page could not show one only once."""

    list_display = ("name", "organization", "mode", "created_at", "last_used_at", "expires_at", "revoked_at")
    list_select_related = ("organization",)
    exclude = ("digest",)
