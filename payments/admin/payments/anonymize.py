"""The page that removes the personal data of a customer's payments, after the user has typed the customer's ID."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from payments.admin.base import ReadOnlyAdmin
from payments.admin.forms import OrganizationField, initial_access
from payments.admin.payments.totals import count_text
from payments.admin.scope import Scope
from payments.anonymization import anonymize_payments
from payments.conf import conf
from payments.models import CHANGE_PAYMENTS_MAX, CUSTOMER_ID, Access, Mode, Organization, Payment
from payments.runtime.process import process

PERMISSIONS = ("payments.view_payment", "payments.anonymize_payment")

# The request begins no other batch with less than this share of its time.
RESERVED_SHARE = 0.5


class OutOfTime(Exception):
    """The request has no time for another batch."""


class CustomerForm(forms.Form):
    """Selects a customer of an organization."""

    organization = OrganizationField()
    customer = forms.RegexField(
        CUSTOMER_ID, label="Customer ID", error_messages={"invalid": "Enter a customer ID such as ct_7."}
    )

    def __init__(self, data: Any = None, *, scope: Scope, **options: Any) -> None:
        super().__init__(data, label_suffix="", **options)
        self.fields["organization"].queryset = scope.organizations  # type: ignore[attr-defined]


class ConfirmedForm(CustomerForm):
    """Selects a customer by an ID that the user has typed once more."""

    confirmation = forms.CharField()

    def clean_confirmation(self) -> str:
        confirmation: str = self.cleaned_data["confirmation"]
        if confirmation != self.cleaned_data.get("customer"):
            raise forms.ValidationError("This is not the customer ID. Nothing was removed.")
        return confirmation


def anonymize_view(model_admin: ReadOnlyAdmin, request: HttpRequest) -> HttpResponse:
    """Show how many payments a customer has; on POST, remove their personal data."""
    if request.method not in {"GET", "HEAD", "POST"} or not request.user.has_perms(PERMISSIONS):
        raise PermissionDenied
    scope = Scope.of(request.user)
    if request.method == "POST":
        form: CustomerForm = ConfirmedForm(request.POST, scope=scope)
        if form.is_valid():
            return anonymize(model_admin, request, form)
    elif "customer" in request.GET:
        form = CustomerForm(request.GET, scope=scope)
    else:
        form = CustomerForm(initial={**initial_access(request), **request.GET.dict()}, scope=scope)
    context = {"form": form, **(customer_context(form) if form.is_bound else {})}
    page_context = model_admin.page_context(request, "Remove the personal data of a customer", **context)
    return TemplateResponse(request, "admin/payments/payment/anonymize.html", page_context)


def customer_context(form: CustomerForm) -> dict[str, Any]:
    """Return the template context of a customer's payments; an empty one if the form selects no customer."""
    form.full_clean()
    organization, customer = map(form.cleaned_data.get, ("organization", "customer"))
    if not (organization and customer):
        return {}
    payments = {mode: Payment.objects.visible_to(Access(organization.id, mode)) for mode in Mode}
    texts = {mode: count_text(of_mode.of_customer([customer])) for mode, of_mode in payments.items()}
    counts = ", ".join(f"{text} {mode}" for mode, text in texts.items() if text)
    return {"organization": organization, "customer": customer, "counts": counts}


def anonymize(model_admin: ReadOnlyAdmin, request: HttpRequest, form: CustomerForm) -> HttpResponse:
    """Remove the personal data, and write the admin's log: without the customer's ID, which is personal data too."""
    organization, customer = form.cleaned_data["organization"], form.cleaned_data["customer"]
    removed, is_complete = remove_personal_data(organization, customer)
    text = f"The personal data of {removed:,} payments was removed."
    if removed:
        model_admin.log_change(request, organization, f"{text} They were of one customer.")
    page = reverse("admin:payments_payment_anonymize")
    if is_complete:
        messages.success(request, text)
        return HttpResponseRedirect(page)
    rest = "Some are left, because there are many, or because an import is writing them. Confirm again to continue."
    messages.warning(request, f"{text} {rest}")
    return HttpResponseRedirect(f"{page}?{urlencode({'organization': organization.id, 'customer': customer})}")


def remove_personal_data(organization: Organization, customer_id: str) -> tuple[int, bool]:
    """Return the number of payments without personal data now, and whether these were all."""
    sizes: list[int] = []

    def on_progress(payments: int) -> None:
        sizes.append(payments)
        if process.deadline.remaining_seconds < RESERVED_SHARE * conf.REQUEST_SECONDS_MAX:
            raise OutOfTime

    try:
        for mode in Mode.values:
            access = Access(organization.id, mode)
            anonymize_payments(access, customer_id=customer_id, size=CHANGE_PAYMENTS_MAX, on_progress=on_progress)
    except OutOfTime:
        return sum(sizes), False
    except OperationalError:  # an import is writing the payments, or a statement timed out
        if not connection.is_usable():
            raise
        return sum(sizes), False
    return sum(sizes), True
