"""Organizations in the admin: their names, their API keys and a link to their payments."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from payments.admin.base import NoDeleteAdmin
from payments.admin.keys import KeyColumns
from payments.conf import time_zone_names
from payments.models import AccessState, ApiKey, Organization
from payments.templatetags.texts import local


class OrganizationForm(forms.ModelForm):  # type: ignore[type-arg]
    """An organization's ID, name and time zone. Another time zone must be confirmed."""

    confirmed_zone = forms.CharField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Organization
        fields = ("id", "name", "time_zone")
        labels = {"id": "ID"}
        help_texts = {
            "id": "The organizationId of its payments. It never changes.",
            "time_zone": "Figures, periods and times in the admin use the days of this time zone.",
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "time_zone" in self.fields:  # users who may only view have no fields
            names = time_zone_names()
            self.fields["time_zone"].show_hidden_initial = False
            self.fields["time_zone"].widget = forms.Select(choices=list(zip(names, names, strict=True)))

    def clean(self) -> dict[str, Any]:
        """Ask once more before the time zone of payments changes: the next time, the form has the zone twice."""
        values = super().clean() or self.cleaned_data
        zone = values.get("time_zone")
        if self.instance.pk and zone and zone not in {self.initial["time_zone"], values.get("confirmed_zone")}:
            self.data = {**self.data.dict(), "confirmed_zone": zone}  # type: ignore[attr-defined]  # a QueryDict
            raise ValidationError({"time_zone": ZONE_WARNING})
        return values


ZONE_WARNING = (
    "With another time zone, figures of closed months change: a payment near midnight moves to another day. "
    "Save again to confirm."
)


class KeyInline(KeyColumns, admin.TabularInline):  # type: ignore[type-arg]
    """The keys of an organization, with links to their pages."""

    model = ApiKey
    template = "admin/payments/organization/keys.html"
    fields = readonly_fields = ("name_link", "hint", "mode", "state", "created", "last_used", "expires")
    ordering = ("-id",)
    extra = 0
    can_delete = False

    @admin.display(description="name")
    def name_link(self, key: ApiKey) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("admin:payments_apikey_change", args=[key.pk]), key.name)

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
        if obj is None:
            return ("id", "name", "time_zone")
        return ("ungrouped_id", "name", "time_zone", "confirmed_zone", "last_imports")

    def get_readonly_fields(self, request: HttpRequest, obj: Organization | None = None) -> tuple[str, ...]:
        return () if obj is None else ("ungrouped_id", "last_imports")

    @admin.display(description="ID", ordering="id")
    def ungrouped_id(self, organization: Organization) -> str:
        """Return the ID as a text, to which Django does not add separators of thousands."""
        return str(organization.pk)

    @admin.display(description="last imports")
    def last_imports(self, organization: Organization) -> SafeString:
        """Return a line for each mode: when the last import ended, and how many payments it wrote."""
        states = AccessState.objects.filter(organization=organization).order_by("mode")
        lines = [
            (state.mode, local(state.imported_at, organization.zone), state.imported_payments)
            for state in states
            if state.imported_at
        ]
        text = format_html_join(mark_safe("<br>"), "{}: {}, {} payments new or changed", lines)
        return text or mark_safe("None yet")

    @admin.display(description="active keys", ordering="active_key_count")
    def active_keys(self, organization: Any) -> Any:
        return organization.active_key_count

    @admin.display(description="payments")
    def payments_link(self, organization: Organization) -> SafeString:
        """Return a link. A method named `payments`, as the relation, would make the column sortable by it."""
        address = reverse("admin:payments_payment_changelist")
        return format_html('<a href="{}?organization={}">View payments</a>', address, organization.id)
