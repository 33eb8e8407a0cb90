"""What the admin's pages have in common: who may do what."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class KeptAdmin(ModelAdmin):
    """Nothing is deleted here."""

    show_facets = admin.ShowFacets.NEVER

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def context(self, request: HttpRequest, title: str, extra_context: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what a page of our own is given, beside what it shows."""
        return {**self.admin_site.each_context(request), "title": title, "opts": self.opts, **(extra_context or {})}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class UnchangedAdmin(KeptAdmin):
    """What is there stays as it is."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(UnchangedAdmin):
    """Nothing is added here either."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
