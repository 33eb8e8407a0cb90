"""Records which staff read the pages of payments, and lists these reads for administrators.

A read is recorded before its page is sent. The page never waits for the record, nor fails because of it.
"""

import logging
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db import Error
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.urls import path

from payments.admin.base import ReadOnlyAdmin
from payments.admin.payments.display import payment_href
from payments.database.limits import transaction_without_waiting
from payments.models import PAYMENT_ID, PaymentRead
from payments.models.payment_read import USER_NAME_MAX

PAGE_ROWS = 50

logger = logging.getLogger(__name__)


def record_read(user: User | AnonymousUser, record: Any, *, now: datetime) -> None:
    """Write that a user reads a payment. If the database is busy, write it to the log."""
    try:
        with transaction_without_waiting():
            PaymentRead.objects.create(
                read_at=now,
                user_id=str(user.pk),
                user_name=user.get_username(),
                organization_id=record.organization_id,
                payment_id=record.id,
            )
    except Error as error:
        logger.warning(
            "The read of payment %s of organization %s by user %s was not written: %s",
            *(record.id, record.organization_id, user.pk, error),
        )


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
        lookups = {"user_name": "user", "payment_id": "payment", "id__lt": "before"}
        values = {lookup: self.cleaned_data[name] for lookup, name in lookups.items()}
        reads = PaymentRead.objects.filter(**{lookup: value for lookup, value in values.items() if value})
        return list(reads.order_by("-id")[: PAGE_ROWS + 1])


@admin.register(PaymentRead)
class PaymentReadAdmin(ReadOnlyAdmin):
    """The list of reads, page by page. Django's list would count all rows."""

    def get_urls(self) -> list[Any]:
        return [path("", self.admin_site.admin_view(self.changelist_view), name="payments_paymentread_changelist")]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if request.method not in {"GET", "HEAD"} or not self.has_view_permission(request):
            raise PermissionDenied
        form = ReadsForm(request.GET, label_suffix="")
        reads = form.page() if form.is_valid() else []
        rows = reads[:PAGE_ROWS]
        context = self.page_context(
            request,
            "Payment reads",
            form=form,
            reads=[(read, payment_href(read.payment_id)) for read in rows],
            newest_query=query_of(request.GET) if "before" in request.GET else None,
            older_query=query_of(request.GET, before=rows[-1].pk) if len(reads) > PAGE_ROWS else None,
        )
        status = HTTPStatus.OK if form.is_valid() else HTTPStatus.BAD_REQUEST
        return TemplateResponse(request, "admin/payments/paymentread/change_list.html", context, status=status)


def query_of(query: QueryDict, **position: Any) -> str:
    return urlencode({name: query[name] for name in ("user", "payment") if query.get(name)} | position)
