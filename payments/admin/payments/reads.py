"""Records which staff read which payments, and lists these reads for administrators.

A read is recorded before its response is sent. The response never waits for the record, nor fails because of it.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.db import Error
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone

from payments.admin.base import ReadOnlyAdmin
from payments.admin.payments.display import PaymentDisplay
from payments.database.limits import transaction_without_waiting
from payments.models import PAYMENT_ID, Access, Organization, Payment, PaymentRead, ReadKind
from payments.models.staff import USER_NAME_MAX
from payments.rows import RowValues

PAGE_ROWS = 50
TITLES = ("Time", "User", "Shown in", "Organization", "Payments", "From", "To", "Filters")

logger = logging.getLogger(__name__)


def record_read(
    user: User | AnonymousUser,
    kind: ReadKind,
    access: Access,
    rows: Sequence[RowValues],
    *,
    filters: Iterable[str] = (),
) -> None:
    """Write that a user reads the payments of these rows, in the order of the list. If the database is busy, log it.

    `filters` are the names of the filters that selected the payments.
    """
    read = PaymentRead(
        read_at=timezone.now(),
        user_id=str(user.pk),
        user_name=user.get_username(),
        kind=kind,
        organization_id=access.organization_id,
        mode=access.mode,
        filters=", ".join(filters),
        count=len(rows),
    )
    if rows:
        first, last = PaymentDisplay(rows[0]), PaymentDisplay(rows[-1])
        read.first_id, read.last_id = first.record.id, last.record.id
        read.oldest_at, read.newest_at = sorted((first.created_at, last.created_at))
    try:
        with transaction_without_waiting():
            read.save(force_insert=True)
    except Error as error:
        logger.warning("A read was not written: %s: %s", describe(read), type(error).__name__)


def describe(read: PaymentRead) -> str:
    """Return the values of a read, for the log, which names users by their numbers."""
    names = ("kind", "user_id", "organization_id", "mode", "count", "first_id", "last_id", "filters")
    return ", ".join(f"{name}={getattr(read, name)}" for name in names)


class ReadsForm(forms.Form):
    """Selects the reads by a user or of a payment."""

    user = forms.CharField(required=False, max_length=USER_NAME_MAX)
    payment = forms.RegexField(
        PAYMENT_ID, label="Payment ID", required=False, error_messages={"invalid": "Enter a payment ID: pt_..."}
    )
    # The ID of the last read of the previous page.
    before = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput)

    def page(self) -> list[PaymentRead]:
        """Return the reads of a page, newest first, and one more if there is a next page. The form must be valid."""
        user, payment_id, before = (self.cleaned_data[name] for name in ("user", "payment", "before"))
        reads = PaymentRead.objects.order_by("-id")
        if user:
            reads = reads.filter(user_name=user)
        if before:
            reads = reads.filter(id__lt=before)
        if payment_id:
            reads = reads.filter(may_contain(payment_id))
        return list(reads[: PAGE_ROWS + 1])


def may_contain(payment_id: str) -> Q:
    """Select the views of a payment's page, and the lists and exports that reach from before it to after it.

    A record has no values of filters, so such a list or export need not contain the payment.
    """
    selected = Q(kind=ReadKind.PAYMENT, first_id=payment_id)
    payments = Payment.objects.with_id(payment_id)
    for organization_id, mode, time in payments.values_list("organization_id", "mode", "created_at"):
        reaches = Q(organization_id=organization_id, mode=mode, oldest_at__lte=time, newest_at__gte=time)
        selected |= ~Q(kind=ReadKind.PAYMENT) & reaches
    return selected


@admin.register(PaymentRead)
class PaymentReadAdmin(ReadOnlyAdmin):
    """The list of reads, page by page. Django's list would count all rows."""

    def get_urls(self) -> list[Any]:
        return [path("", self.admin_site.admin_view(self.changelist_view), name="payments_paymentread_changelist")]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        self.require_view_permission(request)
        form = ReadsForm(request.GET, label_suffix="")
        reads = form.page() if form.is_valid() else []
        rows = reads[:PAGE_ROWS]
        organizations = Organization.objects.in_bulk({read.organization_id for read in rows})
        zones: dict[int, tzinfo] = {number: organization.zone for number, organization in organizations.items()}
        context = self.page_context(
            request,
            "Payment reads",
            form=form,
            reads=[(read, zones.get(read.organization_id, UTC)) for read in rows],
            titles=TITLES,
            older_than=rows[-1].pk if len(reads) > PAGE_ROWS else None,
        )
        status = HTTPStatus.OK if form.is_valid() else HTTPStatus.BAD_REQUEST
        return TemplateResponse(request, "admin/payments/paymentread/change_list.html", context, status=status)
