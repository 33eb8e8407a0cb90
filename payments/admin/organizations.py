"""Organizations in the admin: their names, their API keys and a link to their payments."""

from collections.abc import Callable
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from payments.admin.base import ScopedAdmin
from payments.admin.keys import KeyColumns
from payments.admin.payments.totals import count_text
from payments.admin.scope import ALL_ORGANIZATIONS
from payments.conf import time_zone_names
from payments.models import (
    Access,
    ApiKey,
    ImportOutcome,
    ImportPart,
    ImportTimes,
    ImportWay,
    Mode,
    Organization,
    Payment,
)
from payments.models.ordering import NEWEST_FIRST
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


def by_mode(description: str, describe: Callable[[Access, ZoneInfo], str], *, empty: str) -> Callable[..., SafeString]:
    """Return a field of the admin with a line for each mode that `describe` has a text for."""

    @admin.display(description=description)
    def lines(_admin: Any, organization: Organization) -> SafeString:
        texts = [(mode.label, describe(Access(organization.id, mode.value), organization.zone)) for mode in Mode]
        found = [(label, text) for label, text in texts if text]
        return format_html_join(mark_safe("<br>"), "{}: {}", found) or mark_safe(empty)  # noqa: S308  our own text

    return lines


def last_import(way: ImportWay, access: Access, zone: ZoneInfo) -> str:
    times = ImportTimes.objects.of(access)
    return local(times.by_way[way], zone) if times and way in times.by_way else ""


def late_time(access: Access, zone: ZoneInfo) -> str:
    """Return when an import is late at last, and whether this is the case."""
    times = ImportTimes.objects.of(access)
    if times is None or times.late_at is None:
        return ""
    return format_html("{}{}", local(times.late_at, zone), " (late)" if times.is_late else "")


def last_failed_import(access: Access, zone: ZoneInfo) -> str:
    part = ImportPart.objects.of(access).filter(run__outcome=ImportOutcome.FAILED).first()
    return local(part.run.started_at, zone) if part else ""


def newest_time(access: Access, zone: ZoneInfo) -> str:
    newest = Payment.objects.visible_to(access).order_by(*NEWEST_FIRST).values_list("created_at", flat=True).first()
    return local(newest, zone) if newest else ""


def count_of(access: Access, _zone: ZoneInfo) -> str:
    return count_text(Payment.objects.visible_to(access))


@admin.register(Organization)
class OrganizationAdmin(ScopedAdmin):
    """Organizations can be added and renamed. Their ID never changes, because payments contain it."""

    form = OrganizationForm
    organization_field = "id"
    list_display = ("ungrouped_id", "name", "active_keys", "payments_link")
    list_display_links = ("ungrouped_id", "name")
    ordering = ("name", "id")
    search_fields = ("name__istartswith", "id__exact")
    inlines = (KeyInline,)

    last_by_command = by_mode("last import by command", partial(last_import, ImportWay.COMMAND), empty="Never")
    last_by_api = by_mode("last import over the API", partial(last_import, ImportWay.API), empty="Never")
    next_import = by_mode("next import before", late_time, empty="Not enough imports for a schedule")
    last_failure = by_mode("last failed import", last_failed_import, empty="None in 90 days")
    newest_payment = by_mode("newest payment", newest_time, empty="No payments yet")
    payment_count = by_mode("number of payments", count_of, empty="0")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Organization]:
        active = Q(keys__in=ApiKey.objects.active(now=Now()))
        organizations: QuerySet[Organization] = super().get_queryset(request)
        return organizations.annotate(active_key_count=Count("keys", filter=active))

    def get_fields(self, request: HttpRequest, obj: Organization | None = None) -> tuple[str, ...]:
        if obj is None:
            return ("id", "name", "time_zone")
        shown = self.get_readonly_fields(request, obj)[1:]
        return ("ungrouped_id", "name", "time_zone", "confirmed_zone", *shown)

    def get_readonly_fields(self, request: HttpRequest, obj: Organization | None = None) -> tuple[str, ...]:
        if obj is None:
            return ()
        of_payments = ("newest_payment", "payment_count") if request.user.has_perm("payments.view_payment") else ()
        return ("ungrouped_id", "last_by_command", "last_by_api", "next_import", "last_failure", *of_payments)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Allow only users of all organizations to add one, and to change its name or time zone."""
        return super().has_add_permission(request) and request.user.has_perm(ALL_ORGANIZATIONS)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and request.user.has_perm(ALL_ORGANIZATIONS)

    @admin.display(description="ID", ordering="id")
    def ungrouped_id(self, organization: Organization) -> str:
        """Return the ID as a text, to which Django does not add separators of thousands."""
        return str(organization.pk)

    @admin.display(description="active keys", ordering="active_key_count")
    def active_keys(self, organization: Any) -> Any:
        return organization.active_key_count

    @admin.display(description="payments")
    def payments_link(self, organization: Organization) -> SafeString:
        """Return a link. A method named `payments`, as the relation, would make the column sortable by it."""
        address = reverse("admin:payments_payment_changelist")
        return format_html('<a href="{}?organization={}">View payments</a>', address, organization.id)
