"""Base classes of the admin's model pages: which actions they allow, and what their pages have in common."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst

from payments.admin.strict import StrictAdmin


class NoDeleteAdmin(StrictAdmin):
    """A model admin that cannot delete."""

    show_facets = admin.ShowFacets.NEVER

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def page_context(self, request: HttpRequest, title: str, **context: Any) -> dict[str, Any]:
        """Return the template context of a page that Django's admin does not have."""
        return {**self.admin_site.each_context(request), "title": title, "opts": self.opts, **context}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class NoChangeAdmin(NoDeleteAdmin):
    """A model admin that cannot change or delete."""

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the object. Django would save a form as a new object if it has the field `_saveasnew`."""
        if request.method == "POST":
            raise PermissionDenied
        return super().change_view(request, object_id, form_url, extra_context)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(NoChangeAdmin):
    """A model admin that cannot add, change or delete."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
