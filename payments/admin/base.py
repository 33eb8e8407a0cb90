"""Base classes of the admin's model pages: they refuse invalid requests, and some cannot delete, change or add.

Django's model admin fails on invalid requests or runs unbounded queries.

It uses a private API of Django: `ModelAdmin.get_object`.
"""

from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import BadRequest, PermissionDenied, ValidationError
from django.db.models import ManyToManyField, Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst

from payments.api.errors import RETRY_HEADERS, RETRY_SECONDS

# The browser loads the page again by itself.
RELOAD_HEADERS = {"Refresh": str(RETRY_SECONDS)}

# As many as the longest text that can be found: an email address.
SEARCH_CHARACTERS_MAX = 254
SEARCH_TOO_LONG = f"The search text is too long. Enter at most {SEARCH_CHARACTERS_MAX} characters."


class KeysField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Objects, chosen by their keys. SQLite fails on keys that are too large."""

    def clean(self, value: Any) -> Any:
        for key in value or ():
            clean_key(self.queryset.model, key)  # type: ignore[union-attr]  # a field of a model has a queryset
        return super().clean(value)


class StrictAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Refuses lookups, searches and keys that the admin's pages never send."""

    formfield_overrides = {ManyToManyField: {"form_class": KeysField}}

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow only the parameters in the links of the list's filters, each once.

        Django allows all lookups of the model's fields. A regular expression can occupy a worker for ever on SQLite; an
        invalid one is an error, as is a null character on PostgreSQL.
        """
        fields = (self.opts.get_field(str(name)) for name in self.get_list_filter(request))
        is_linked = any(lookup in link_parameters(field) for field in fields)
        return is_linked and "\0" not in value and len(request.GET.getlist(lookup)) == 1

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return no objects for a long text: SQLite refuses a condition with thousands of words."""
        if len(search_term) > SEARCH_CHARACTERS_MAX:
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list with a title, or run an action on the selected objects."""
        try:
            for key in request.POST.getlist(ACTION_CHECKBOX_NAME):
                clean_key(self.model, key)
        except ValidationError as error:
            raise BadRequest("The key of a selected object is invalid.") from error
        if len(request.GET.get(SEARCH_VAR, "")) > SEARCH_CHARACTERS_MAX:
            self.message_user(request, SEARCH_TOO_LONG, messages.ERROR)
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the object, or None if it does not exist. Django fails if the parameter `_to_field` is empty."""
        return super().get_object(request, object_id, from_field or None)


class NoDeleteAdmin(StrictAdmin):
    """A model admin that cannot delete."""

    show_facets = admin.ShowFacets.NEVER

    def page_context(self, request: HttpRequest, title: str, **context: Any) -> dict[str, Any]:
        """Return the template context of a page that Django's admin does not have."""
        return {**self.admin_site.each_context(request), "title": title, "opts": self.opts, **context}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class NoChangeAdmin(NoDeleteAdmin):
    """A model admin that cannot change or delete."""

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **options: Any) -> HttpResponse:
        """Show the object. Django would save a form as a new object if it has the field `_saveasnew`."""
        if request.method == "POST":
            raise PermissionDenied
        return super().change_view(request, object_id, *args, **options)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(NoChangeAdmin):
    """A model admin that cannot add, change or delete."""

    def require_view_permission(self, request: HttpRequest) -> None:
        """Refuse users who may not view the objects, and all methods that could change something."""
        if request.method not in {"GET", "HEAD"} or not self.has_view_permission(request):
            raise PermissionDenied

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def error_text(text: str, status: HTTPStatus) -> HttpResponse:
    """Return an error as plain text, for a script or a program."""
    return HttpResponse(text, status=status, headers=headers_of(status), content_type="text/plain; charset=utf-8")


def headers_of(status: HTTPStatus) -> dict[str, str]:
    """Return the headers that say when to try again, if the service is unavailable."""
    return RETRY_HEADERS if status == HTTPStatus.SERVICE_UNAVAILABLE else {}


def link_parameters(field: Any) -> set[str]:
    """Return the parameters in the links of a field's filter."""
    if field.related_model is None:
        return {f"{field.name}__exact"}
    return {f"{field.name}__{field.target_field.name}__exact", f"{field.name}__isnull"}


def clean_key(model: type[Model], key: str) -> None:
    """Raise `ValidationError` if no object of the model can have this primary key."""
    model._meta.pk.clean(key, None)  # noqa: SLF001  Django's documented name for a model's options
