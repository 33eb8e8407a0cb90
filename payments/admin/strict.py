"""A model admin that refuses invalid requests. Django's model admin fails on them or runs unbounded queries.

It uses a private API of Django: `ModelAdmin.get_object`.
"""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import BadRequest, ValidationError
from django.db.models import ManyToManyField, Model, QuerySet
from django.http import HttpRequest, HttpResponse

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    ModelMultipleChoiceField = forms.ModelMultipleChoiceField[Any]
else:
    ModelAdmin = admin.ModelAdmin
    ModelMultipleChoiceField = forms.ModelMultipleChoiceField

# As many as the longest text that can be found: an email address.
SEARCH_CHARACTERS_MAX = 254
SEARCH_TOO_LONG = f"The search text is too long. Enter at most {SEARCH_CHARACTERS_MAX} characters."


class KeysField(ModelMultipleChoiceField):
    """Objects, chosen by their keys. SQLite fails on keys that are too large."""

    def clean(self, value: Any) -> Any:
        for key in value or ():
            clean_key(self.queryset.model, key)  # type: ignore[union-attr]  # a field of a model has a queryset
        return super().clean(value)


class StrictAdmin(ModelAdmin):
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
        if is_too_long(search_term):
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, or run an action on the selected objects."""
        try:
            for key in request.POST.getlist(ACTION_CHECKBOX_NAME):
                clean_key(self.model, key)
        except ValidationError as error:
            raise BadRequest("The key of a selected object is invalid.") from error
        if is_too_long(request.GET.get(SEARCH_VAR, "")):
            self.message_user(request, SEARCH_TOO_LONG, messages.ERROR)
        return super().changelist_view(request, extra_context)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the object, or None if it does not exist. Django fails if the parameter `_to_field` is empty."""
        return super().get_object(request, object_id, from_field or None)


def link_parameters(field: Any) -> set[str]:
    """Return the parameters in the links of a field's filter."""
    if field.related_model is None:
        return {f"{field.name}__exact"}
    return {f"{field.name}__{field.target_field.name}__exact", f"{field.name}__isnull"}


def is_too_long(search_term: str) -> bool:
    return len(search_term) > SEARCH_CHARACTERS_MAX


def clean_key(model: type[Model], key: str) -> None:
    """Validate the primary key of an object.

    :raises ValidationError: if no object can have this key
    """
    model._meta.pk.clean(key, None)  # noqa: SLF001  Django's documented name for a model's options
