"""Base classes of the admin's model pages: they refuse invalid requests, and none can delete.

Django's model admin fails on invalid requests or runs unbounded queries.

It uses a private API of Django: `ModelAdmin.get_object`.
"""

from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import PermissionDenied
from django.db.models import ManyToManyField, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.text import capfirst

from payments.admin.forms import RecordsForm, header_context
from payments.admin.scope import Scope
from payments.api.errors import RETRY_HEADERS, RETRY_SECONDS
from payments.models import Organization

# The browser loads the page again by itself.
RELOAD_HEADERS = {"Refresh": str(RETRY_SECONDS)}

PAGE_RECORDS = 50

# As many as the longest text that can be found: an email address.
SEARCH_CHARACTERS_MAX = 254
SEARCH_TOO_LONG = f"The search text is too long. Enter at most {SEARCH_CHARACTERS_MAX} characters."


class KeysField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Objects, chosen by their keys. SQLite fails on keys that are too large."""

    def clean(self, value: Any) -> Any:
        for key in value or ():
            self.queryset.model._meta.pk.clean(key, None)  # type: ignore[union-attr]  # noqa: SLF001
        return super().clean(value)


class StrictAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Cannot delete. Refuses lookups, searches and keys that the admin's pages never send."""

    formfield_overrides = {ManyToManyField: {"form_class": KeysField}}
    actions = None  # they would be for several objects

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow only the parameters in the links of the list's filters, each once. No filter is by a relation.

        Django allows all lookups of the model's fields. A regular expression can occupy a worker for ever on SQLite; an
        invalid one is an error, as is a null character on PostgreSQL.
        """
        filters: Any = self.get_list_filter(request)
        linked = {f"{item}__exact" if isinstance(item, str) else item.parameter_name for item in filters}
        return lookup in linked and "\0" not in value and len(request.GET.getlist(lookup)) == 1

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return no objects for a long text: SQLite refuses a condition with thousands of words."""
        if len(search_term) > SEARCH_CHARACTERS_MAX:
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list with a title."""
        if len(request.GET.get(SEARCH_VAR, "")) > SEARCH_CHARACTERS_MAX:
            self.message_user(request, SEARCH_TOO_LONG, messages.ERROR)
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Show one button: what staff save here is rarely added twice."""
        context |= {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().render_change_form(request, context, *args, **options)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the object, or None if it does not exist. Django fails if the parameter `_to_field` is empty."""
        return super().get_object(request, object_id, from_field or None)

    def page_context(self, request: HttpRequest, title: str, **context: Any) -> dict[str, Any]:
        """Return the template context of a page that Django's admin does not have."""
        return {**self.admin_site.each_context(request), "title": title, "opts": self.opts, **context}


class ScopedAdmin(StrictAdmin):
    """A model admin whose objects belong to organizations. Users see those of their organizations."""

    show_facets = admin.ShowFacets.NEVER
    organization_field = "organization_id"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return Scope.of(request.user).limit(super().get_queryset(request), field=self.organization_field)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Show the organization in the title and the header."""
        original = context.get("original")
        if organization := original if isinstance(original, Organization) else getattr(original, "organization", None):
            context |= header_context(organization, capfirst(self.opts.verbose_name))
            context["subtitle"] = "" if original == organization else str(original)
        return super().render_change_form(request, context, *args, **options)


class ReadOnlyAdmin(ScopedAdmin):
    """A scoped admin that cannot add or change."""

    def require_view_permission(self, request: HttpRequest) -> None:
        """Refuse users who may not view the objects, and all methods that could change something."""
        if request.method not in {"GET", "HEAD"} or not self.has_view_permission(request):
            raise PermissionDenied

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class RecordListAdmin(ReadOnlyAdmin):
    """A list of records, page by page, newest first. Django's list would count all rows."""

    form_class: type[RecordsForm] = RecordsForm
    page_title: str

    def get_urls(self) -> list[Any]:
        name = f"payments_{self.opts.model_name}_changelist"
        return [path("", self.admin_site.admin_view(self.changelist_view), name=name)]

    def get_records(self, form: Any) -> QuerySet[Any]:
        """Return the records that a valid form selects, newest first."""
        raise NotImplementedError

    def get_rows(self, records: list[Any], scope: Scope) -> list[Any]:
        """Return the rows of a page for a user with this scope."""
        raise NotImplementedError

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        self.require_view_permission(request)
        scope = Scope.of(request.user)
        form = self.form_class(request.GET, scope=scope)
        is_valid = form.is_valid()
        records = self.read_page(form) if is_valid else []
        context = self.page_context(
            request,
            **form.page_context(self.page_title),
            form=form,
            keeps_page=True,
            rows=self.get_rows(records[:PAGE_RECORDS], scope),
            older_than=records[PAGE_RECORDS - 1].pk if len(records) > PAGE_RECORDS else None,
        )
        template = f"admin/payments/{self.opts.model_name}/change_list.html"
        status = HTTPStatus.OK if is_valid else HTTPStatus.BAD_REQUEST
        return TemplateResponse(request, template, context, status=status)

    def read_page(self, form: RecordsForm) -> list[Any]:
        """Return the records of a page, and one more if there is a next page."""
        records, before = self.get_records(form), form.cleaned_data["before"]
        if before:
            records = records.filter(pk__lt=before)
        return list(records[: PAGE_RECORDS + 1])


def error_text(text: str, status: HTTPStatus) -> HttpResponse:
    """Return an error as plain text, for a script or a program."""
    return HttpResponse(text, status=status, headers=headers_of(status), content_type="text/plain; charset=utf-8")


def headers_of(status: HTTPStatus) -> dict[str, str]:
    """Return the headers that say when to try again, if the service is unavailable."""
    return RETRY_HEADERS if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
