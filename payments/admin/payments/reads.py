"""Records which staff read which payments, and lists these reads for administrators.

A read is recorded before its response is sent. The response never waits for the record, nor fails because of it.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.db import Error
from django.db.models import Q, QuerySet
from django.utils import timezone

from payments.admin.base import RecordListAdmin
from payments.admin.forms import RecordsForm
from payments.admin.payments.display import PaymentDisplay
from payments.admin.scope import Scope
from payments.database.limits import transaction_without_waiting
from payments.models import PAYMENT_ID, Access, Organization, PaymentRead, ReadKind
from payments.models.staff import USER_NAME_MAX
from payments.rows import RowValues

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


class ReadsForm(RecordsForm):
    """Selects the reads by a user or of a payment."""

    user = forms.CharField(required=False, max_length=USER_NAME_MAX)
    payment = forms.RegexField(
        PAYMENT_ID, label="Payment ID", required=False, error_messages={"invalid": "Enter a payment ID: pt_..."}
    )


@dataclass(frozen=True)
class ReadRow:
    """A read, and its organization, which may have been deleted."""

    read: PaymentRead
    organization: Organization | None

    @property
    def zone(self) -> tzinfo:
        return self.organization.zone if self.organization else UTC


def may_contain(payment_id: str, *, scope: Scope) -> Q:
    """Select the views of a payment's page, and the lists and exports that reach from before it to after it.

    A record has no values of filters, so such a list or export need not contain the payment.
    """
    selected = Q(kind=ReadKind.PAYMENT, first_id=payment_id)
    payments = scope.payments.filter(id=payment_id)
    for organization_id, mode, time in payments.values_list("organization_id", "mode", "created_at"):
        reaches = Q(organization_id=organization_id, mode=mode, oldest_at__lte=time, newest_at__gte=time)
        selected |= ~Q(kind=ReadKind.PAYMENT) & reaches
    return selected


@admin.register(PaymentRead)
class PaymentReadAdmin(RecordListAdmin):
    """The list of reads."""

    form_class = ReadsForm
    page_title = "Access log"

    def get_records(self, form: ReadsForm) -> QuerySet[Any]:
        scope, user, payment_id = form.scope, form.cleaned_data["user"], form.cleaned_data["payment"]
        reads = scope.limit(PaymentRead.objects.order_by("-id"))
        if user:
            reads = reads.filter(user_name=user)
        return reads.filter(may_contain(payment_id, scope=scope)) if payment_id else reads

    def get_rows(self, records: list[PaymentRead], scope: Scope) -> list[ReadRow]:
        organizations = scope.organizations.in_bulk({read.organization_id for read in records})
        return [ReadRow(read, organizations.get(read.organization_id)) for read in records]
