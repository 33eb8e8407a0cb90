"""Payments: the table, its constraints and indexes, and the conditions that lists use."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Any, NoReturn

from django.db import models
from django.db.models import Expression, Q
from django.db.models.functions import Coalesce, Length
from django.db.models.lookups import LessThanOrEqual
from django.utils import timezone

from payments.models.choices import IN_PROGRESS, Mode, SequenceType, Status
from payments.models.expressions import ByteLength, Day, Literal, Opaque, hidden
from payments.models.fields import DocumentField, IdentifierField, MillisecondField
from payments.models.identifiers import RANDOM_BYTES, make_payment_id
from payments.models.ordering import NEWEST_FIRST
from payments.models.organization import Access, Organization
from payments.models.recording import RecordingQuerySet

PAYMENT_ID = r"\Apt_[A-Za-z0-9_-]{1,61}\Z"
CUSTOMER_ID = r"\Act_[A-Za-z0-9_-]{1,61}\Z"
METHOD = r"\A[A-Za-z0-9_-]{1,32}\Z"
IDENTIFIER_MAX = 64
METHOD_MAX = 32

# The longest text and record, in bytes in UTF-8. So a page has a limit too.
TEXT_BYTES_MAX = 16_384
RECORD_BYTES_MAX = 65_536

# SQLite computes in binary. It returns up to 15 digits unchanged.
MONEY_DIGITS = 15


class PaymentsCannotBeDeleted(Exception):
    """Raised by any attempt to delete a payment: a client that walks the list would lose its position."""


def new_payment_id() -> str:
    """Return an ID for a payment that is created now."""
    return make_payment_id(timezone.now(), secrets.token_bytes(RANDOM_BYTES))


def uses_status_index(statuses: Collection[str]) -> bool:
    """Return whether the index `payment_status` has the payments with these statuses in the order of the list."""
    return len(statuses) == 1 and Status.SUCCEEDED not in statuses


def uses_in_flight_index(statuses: Collection[str]) -> bool:
    """Return whether the index `payment_in_flight` has the payments with these statuses in the order of the list."""
    return IN_PROGRESS.issuperset(statuses)


class PaymentQuerySet(RecordingQuerySet["Payment"]):
    """Payments, selected by access and by filters.

    Except for statuses, a value may be a placeholder of a compiled statement. The planner of PostgreSQL does not see
    the values of filters (`hidden`, `Opaque`), because its statistics cover all organizations.
    """

    def visible_to(self, access: Access, *, hides: Collection[str] = ()) -> PaymentQuerySet:
        """Return the payments of the organization and mode. Every list starts here.

        `hides`: columns, "mode" or "organization_id", by which the planner of PostgreSQL does not find the payments.
        """
        conditions = {"mode": Q(mode=access.mode), "organization_id": Q(organization_id=access.organization_id)}
        return self.filter(*(Opaque(is_equal) if name in hides else is_equal for name, is_equal in conditions.items()))

    def with_status(self, statuses: Collection[str]) -> PaymentQuerySet:
        """Return the payments with one of these statuses. The conditions contain the predicate of a partial index."""
        literals = list(map(Literal, statuses))
        if uses_status_index(statuses):
            return self.filter(~Q(status=Literal(Status.SUCCEEDED)), status=hidden(literals[0]))
        payments = self
        if uses_in_flight_index(statuses):
            payments = self.filter(status__in=list(map(Literal, sorted(IN_PROGRESS))))
        return payments if set(statuses) == IN_PROGRESS else payments.filter(Opaque(Q(status__in=literals)))

    def of_customer(self, customer_ids: Collection[str | Expression]) -> PaymentQuerySet:
        """Return the payments of these customers. The conditions contain the predicate of a partial index."""
        values = list(map(hidden, customer_ids))
        # PostgreSQL would read an IN of one hidden value, which is a subquery, as a join, and see the value.
        is_one = Q(customer_id=values[0]) if len(values) == 1 else Q(customer_id__in=values)
        return self.filter(~Q(customer_id=Literal("")), is_one)

    def created(self, value: datetime | Expression, *, lookup: str) -> PaymentQuerySet:
        """Return the payments created on one side of a time: gte, gt, lte or lt."""
        return self.filter(**{f"created_at__{lookup}": hidden(value, "timestamptz")})

    def matching(self, value: Any, *, column: str, lookup: str) -> PaymentQuerySet:
        """Return the payments that match a lookup of a column without an index, such as `method__in`."""
        return self.filter(Opaque(Q(**{f"{column}__{lookup}": value})))

    def delete(self) -> NoReturn:
        raise PaymentsCannotBeDeleted

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]


def matches(field: str, pattern: str, length_max: int) -> Q:
    """Return the condition that a text matches `pattern`.

    The length is checked apart: with a count inside its pattern PostgreSQL takes ten times as long.
    """
    uncounted = re.sub(r"\{1,[0-9]+\}", "+", pattern)
    return Q(**{f"{field}__regex": uncounted}) & Q(LessThanOrEqual(Length(field), length_max))


def both_or_neither(money: str) -> Q:
    """Return the condition that an optional amount has both a value and a currency, or neither."""
    is_absent = {f"{money}__isnull": True, f"{money}_currency__isnull": True}
    return Q(**is_absent) | Q(**dict.fromkeys(is_absent, False))


def is_within_limits() -> Q:
    """Return the condition that the description and all texts together are not too long.

    The import measures a record exactly, with the names of its members and the escapes of JSON.
    """
    total = ByteLength("description") + ByteLength("redirect_url") + ByteLength("webhook_url") + ByteLength("metadata")
    return Q(
        LessThanOrEqual(ByteLength("description"), TEXT_BYTES_MAX),
        LessThanOrEqual(total + Coalesce(ByteLength("details"), 0), RECORD_BYTES_MAX),
    )


class Payment(models.Model):
    """A payment. It is never deleted, and its `created_at` never changes."""

    id = IdentifierField(primary_key=True, max_length=IDENTIFIER_MAX, default=new_payment_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="payments", db_index=False)
    mode = models.CharField(max_length=4, choices=Mode.choices)
    amount = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=2)
    amount_currency = models.CharField(max_length=3)
    amount_net = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=2, null=True, blank=True)
    amount_net_currency = models.CharField(max_length=3, null=True, blank=True)  # noqa: DJ001  null, like its amount
    amount_remaining = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=2, null=True, blank=True)
    amount_remaining_currency = models.CharField(max_length=3, null=True, blank=True)  # noqa: DJ001  null, as above
    description = models.TextField(blank=True)
    method = models.CharField(max_length=METHOD_MAX, blank=True)
    redirect_url = models.TextField("redirect URL", blank=True)
    webhook_url = models.TextField("webhook URL", blank=True)
    status = models.CharField(max_length=10, choices=Status.choices)
    sequence_type = models.CharField(max_length=9, choices=SequenceType.choices)
    metadata = DocumentField(default="{}")
    details = DocumentField(null=True, blank=True)
    created_at = MillisecondField(default=timezone.now)
    expires_at = MillisecondField(null=True, blank=True)
    paid_at = MillisecondField(null=True, blank=True)
    # `paid_at` before the last write, if that changed it: the write also changes the totals of that day.
    paid_before = MillisecondField(null=True, blank=True, editable=False)
    # `status` before the last import that wrote the payment, if that changed it.
    status_before = models.CharField(max_length=10, null=True, blank=True, editable=False)  # noqa: DJ001  null, as above
    # When personal data was removed. An import that changes the payment makes it empty: the data may be back.
    anonymized_at = MillisecondField(null=True, blank=True, editable=False)
    customer_id = models.CharField("customer ID", max_length=IDENTIFIER_MAX, blank=True)
    # The ID of the last `Change`. It is not a foreign key: the change gets its number and row at the transaction's end.
    change_id = models.BigIntegerField(editable=False)

    objects = PaymentQuerySet.as_manager()

    class Meta:
        base_manager_name = "objects"  # records changes (recording.py)
        default_permissions = ("view",)
        permissions = [("anonymize_payment", "Can remove the personal data of payments")]
        # Amounts have no index, because each index slows every import. A lower fillfactor would not help
        # updates: a change of `status` changes the condition of two indexes.
        indexes = [
            # The list of one organization and mode, from any position, in both directions.
            models.Index(
                "organization",
                "mode",
                models.F("created_at").desc(),
                models.F("id").desc(),
                name="payment_list",
            ),
            # The list of one status. Most payments have succeeded; for these, the index `payment_list` is fast enough.
            models.Index(
                fields=["organization", "mode", "status", *NEWEST_FIRST],
                name="payment_status",
                condition=~Q(status=Status.SUCCEEDED),
            ),
            # The list of several statuses in flight.
            models.Index(
                fields=["organization", "mode", *NEWEST_FIRST],
                name="payment_in_flight",
                condition=Q(status__in=sorted(IN_PROGRESS)),
            ),
            models.Index(
                fields=["organization", "mode", "customer_id", *NEWEST_FIRST],
                name="payment_customer",
                condition=~Q(customer_id=""),
            ),
            # The totals of paid days, and the list within few of them. Without the ID, it costs imports the least.
            models.Index(
                "organization",
                "mode",
                Day("paid_at"),
                models.F("created_at").desc(),
                name="payment_paid",
                condition=Q(paid_at__isnull=False),
            ),
            # The change feed. The index cannot replace `payment_list`: without statistics, PostgreSQL would take a
            # smaller one for it.
            models.Index(fields=["change_id", "organization", "mode"], name="payment_change"),
            # On PostgreSQL, the migration adds the GIN index `payment_terms` for metadata and words (terms.py), and the
            # GIN index `payment_search` for the admin's search (search_terms.py).
        ]
        constraints = [
            models.CheckConstraint(name="payment_id_form", condition=matches("id", PAYMENT_ID, IDENTIFIER_MAX)),
            models.CheckConstraint(name="payment_mode_known", condition=Q(mode__in=Mode.values)),
            models.CheckConstraint(name="payment_status_known", condition=Q(status__in=Status.values)),
            models.CheckConstraint(
                name="payment_sequence_type_known", condition=Q(sequence_type__in=SequenceType.values)
            ),
            models.CheckConstraint(
                name="payment_succeeded_is_paid", condition=~Q(status=Status.SUCCEEDED) | Q(paid_at__isnull=False)
            ),
            models.CheckConstraint(
                name="payment_method_form", condition=Q(method="") | matches("method", METHOD, METHOD_MAX)
            ),
            models.CheckConstraint(
                name="payment_customer_id_form",
                condition=Q(customer_id="") | matches("customer_id", CUSTOMER_ID, IDENTIFIER_MAX),
            ),
            models.CheckConstraint(name="payment_size", condition=is_within_limits()),
            *(
                models.CheckConstraint(name=f"payment_{money}_whole", condition=both_or_neither(money))
                for money in ("amount_net", "amount_remaining")
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise PaymentsCannotBeDeleted
