"""Organizations, their keys and their payments. The rules of the record are the database's own constraints."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.expressions import Combinable
from django.db.models.functions import Length
from django.db.models.lookups import LessThanOrEqual
from django.utils import timezone
from djmoney.models.fields import MoneyField

from payments import api_keys, currencies  # noqa: F401  a stored currency must be known before it is read
from payments.expressions import Beginning, HasWord, Literal, Repeated, after_all_that_begin_with
from payments.fields import DocumentField, IdentifierField, MillisecondField
from payments.identifiers import RANDOM_BYTES, payment_id
from payments.ordering import NEWEST_FIRST
from payments.rows import COLUMNS, NONE, Row

if TYPE_CHECKING:
    from moneyed import Money

ORGANIZATION_ID_MAX = 2**63 - 1

PAYMENT_ID = r"\Apt_[A-Za-z0-9]{1,61}\Z"
CUSTOMER_ID = r"\Act_[A-Za-z0-9]{1,61}\Z"
METHOD = r"\A[a-z0-9_]{1,32}\Z"
IDENTIFIER_MAX = 64
METHOD_MAX = 32

REVISION_BITS = 63

# 15 digits are as many as SQLite, which computes in binary, gives back unchanged.
MONEY_DIGITS = 15


class Mode(models.TextChoices):
    """Whether money moved."""

    LIVE = "live"
    TEST = "test"


class Status(models.TextChoices):
    """How far a payment has come."""

    OPEN = "open"
    PENDING = "pending"
    AUTHORIZED = "authorized"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"


# What is still to be decided: few payments at any time, for which others ask again and again.
IN_FLIGHT = frozenset({Status.OPEN, Status.PENDING, Status.AUTHORIZED})


class SequenceType(models.TextChoices):
    """A payment's place in a row of payments."""

    ONEOFF = "oneoff"
    FIRST = "first"
    RECURRING = "recurring"


# Where names are listed, each has a line.
ONE_LINE = RegexValidator(r"\A[^\x00-\x1f\x7f]*\Z", "A name is one line of text.")


class Organization(models.Model):
    """Whose payments they are. Its id is the record's `organizationId`, so it is given, not counted."""

    id = models.PositiveBigIntegerField(
        primary_key=True, validators=[MinValueValidator(1), MaxValueValidator(ORGANIZATION_ID_MAX)]
    )
    name = models.CharField(max_length=200, validators=[ONE_LINE])
    # Another number with each change of its payments: whoever sees it sees the change.
    revision = models.BigIntegerField(db_default=0, editable=False)

    class Meta:
        constraints = [models.CheckConstraint(name="organization_id_positive", condition=Q(id__gte=1))]

    def __str__(self) -> str:
        return self.name


class Access(NamedTuple):
    """Which payments may be seen: those of one organization, in one mode."""

    organization_id: int
    mode: str


class KeyState(models.TextChoices):
    """What has become of a key."""

    USABLE = "usable"
    EXPIRED = "expired"
    REVOKED = "revoked"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """Keys, by what they open."""

    def issue(
        self, organization: Organization, *, mode: str, name: str, expires_at: datetime | None = None
    ) -> tuple[ApiKey, str]:
        """Make a key and return it with its text, which is kept nowhere: this is the only time it can be shown."""
        text = api_keys.new_key(mode)
        key = self.create(
            organization=organization, mode=mode, name=name, expires_at=expires_at, digest=api_keys.digest(text)
        )
        return key, text

    def usable(self, *, now: datetime | Combinable) -> ApiKeyQuerySet:
        """Leave out the revoked and the expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)

    def revoke(self, *, now: datetime) -> int:
        """Have the next request that shows one of them refused; return how many were not revoked already."""
        return self.filter(revoked_at=None).update(revoked_at=now)


class ApiKey(models.Model):
    """What a client shows to see one organization's payments of one mode."""

    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="keys")
    mode = models.CharField(max_length=4, choices=Mode.choices)
    name = models.CharField(max_length=200, validators=[ONE_LINE])
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        verbose_name_plural = "API keys"
        constraints = [models.CheckConstraint(name="api_key_mode_known", condition=Q(mode__in=Mode.values))]

    def __str__(self) -> str:
        return f"{self.name} ({self.mode})"

    @property
    def access(self) -> Access:
        return Access(self.organization_id, self.mode)

    def state(self, *, now: datetime) -> KeyState:
        if self.revoked_at is not None:
            return KeyState.REVOKED
        return KeyState.EXPIRED if self.expires_at is not None and self.expires_at <= now else KeyState.USABLE


def new_payment_id() -> str:
    """Return an id for a payment made now."""
    return payment_id(timezone.now(), secrets.token_bytes(RANDOM_BYTES))


class PaymentsAreKept(Exception):
    """Raised on any attempt to delete a payment: whoever walks the list would miss it, or lose the way."""


def has_form(field: str, pattern: str, length_max: int) -> Q:
    """Return the condition that a text matches `pattern`, whose count is left to the length.

    Counting within a pattern takes PostgreSQL ten times as long.
    """
    uncounted = re.sub(r"\{1,[0-9]+\}", "+", pattern)
    return Q(**{f"{field}__regex": uncounted}) & Q(LessThanOrEqual(Length(field), length_max))


class PaymentQuerySet(models.QuerySet["Payment"]):
    """Payments, by whom they are shown to, and by what they are."""

    def visible_to(self, access: Access) -> PaymentQuerySet:
        """Return the payments of the organization and mode. Every list starts here."""
        return self.filter(organization_id=access.organization_id, mode=access.mode)

    def of_status(self, statuses: Collection[str]) -> PaymentQuerySet:
        """Return those of any of these statuses."""
        found = self.filter(status__in=list(map(Literal, statuses)))
        if len(statuses) > 1 and IN_FLIGHT.issuperset(statuses):
            return found.filter(Repeated(Q(status__in=list(map(Literal, sorted(IN_FLIGHT))))))
        return found if Status.SUCCEEDED in statuses else found.filter(Repeated(~Q(status=Literal(Status.SUCCEEDED))))

    def of_method(self, methods: Collection[Any]) -> PaymentQuerySet:
        return self.filter(HasWord(methods), method__in=methods)

    def of_customer(self, customer_ids: Collection[Any]) -> PaymentQuerySet:
        return self.filter(Repeated(~Q(customer_id=Literal(""))), customer_id__in=customer_ids)

    def of_sequence_type(self, sequence_types: Collection[Any]) -> PaymentQuerySet:
        return self.filter(HasWord(sequence_types), sequence_type__in=sequence_types)

    def in_currency(self, codes: Collection[Any]) -> PaymentQuerySet:
        return self.filter(HasWord(codes), amount_currency__in=codes)

    def within(self, values: Collection[Any], *, column: str, bound: str) -> PaymentQuerySet:
        """Return those on this side of one value in a column; `bound` is a lookup: gte, gt, lte or lt."""
        [value] = values
        return self.filter(**{f"{column}__{bound}": value})

    def with_metadata(self, documents: Collection[Any]) -> PaymentQuerySet:
        """Return those whose metadata holds all that a JSON object of texts does."""
        [document] = documents
        return self.filter(metadata__holds=document)

    def with_description_start(self, texts: Collection[Any]) -> PaymentQuerySet:
        """Return those whose description begins with a text of `Beginning.LENGTH` characters at most, to the letter."""
        [text] = texts
        begun = self.alias(beginning=Beginning("description"))
        return begun.filter(beginning__gte=text, beginning__lt=after_all_that_begin_with(text))

    def as_rows(self, previous_from: Combinable = NONE) -> models.QuerySet[Payment, Row]:
        """Return them as the serializer takes them: texts, in the order of `rows.COLUMNS`, and one that a page adds."""
        return self.values_list(*COLUMNS, previous_from)

    def delete(self) -> NoReturn:
        raise PaymentsAreKept

    delete.alters_data = True  # type: ignore[attr-defined]
    delete.queryset_only = True  # type: ignore[attr-defined]


class Payment(models.Model):
    """One payment, as the contract's record has it. It is never deleted, and its `created_at` never changes."""

    id = IdentifierField(primary_key=True, max_length=IDENTIFIER_MAX, default=new_payment_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.PROTECT, related_name="payments", db_index=False)
    mode = models.CharField(max_length=4, choices=Mode.choices)
    amount: models.Field[Money, Money] = MoneyField(max_digits=MONEY_DIGITS, decimal_places=2, currency_choices=None)
    amount_net: models.Field[Money | None, Money | None] = MoneyField(
        max_digits=MONEY_DIGITS, decimal_places=2, currency_choices=None, null=True, blank=True
    )
    amount_remaining: models.Field[Money | None, Money | None] = MoneyField(
        max_digits=MONEY_DIGITS, decimal_places=2, currency_choices=None, null=True, blank=True
    )
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
    customer_id = models.CharField("customer ID", max_length=IDENTIFIER_MAX, blank=True)

    objects = PaymentQuerySet.as_manager()

    class Meta:
        indexes = [
            # The list of one organization and mode, from any payment, in either direction.
            models.Index(
                "organization",
                "mode",
                models.F("created_at").desc(),
                models.F("id").desc(),
                name="payment_list",
            ),
            # The same of each status, but for the one that most have, which the list itself is full of.
            models.Index(
                fields=["organization", "mode", "status", *NEWEST_FIRST],
                name="payment_status",
                condition=~Q(status=Status.SUCCEEDED),
            ),
            # And of all that are in flight, whichever of their statuses are asked for together.
            models.Index(
                fields=["organization", "mode", *NEWEST_FIRST],
                name="payment_in_flight",
                condition=Q(status__in=sorted(IN_FLIGHT)),
            ),
            models.Index(
                fields=["organization", "mode", "customer_id", *NEWEST_FIRST],
                name="payment_customer",
                condition=~Q(customer_id=""),
            ),
            # What staff search for, who know how a description begins.
            models.Index("organization", "mode", Beginning("description"), name="payment_description"),
        ]
        constraints = [
            models.CheckConstraint(name="payment_id_form", condition=has_form("id", PAYMENT_ID, IDENTIFIER_MAX)),
            models.CheckConstraint(name="payment_mode_known", condition=Q(mode__in=Mode.values)),
            models.CheckConstraint(name="payment_status_known", condition=Q(status__in=Status.values)),
            models.CheckConstraint(
                name="payment_sequence_type_known", condition=Q(sequence_type__in=SequenceType.values)
            ),
            models.CheckConstraint(
                name="payment_succeeded_is_paid",
                condition=~Q(status=Status.SUCCEEDED) | Q(paid_at__isnull=False),
            ),
            models.CheckConstraint(
                name="payment_method_form", condition=Q(method="") | has_form("method", METHOD, METHOD_MAX)
            ),
            models.CheckConstraint(
                name="payment_customer_id_form",
                condition=Q(customer_id="") | has_form("customer_id", CUSTOMER_ID, IDENTIFIER_MAX),
            ),
            *(
                # A value without its currency, or the other way round, is no money.
                models.CheckConstraint(
                    name=f"payment_{money}_whole",
                    condition=Q(**{f"{money}__isnull": True, f"{money}_currency__isnull": True})
                    | Q(**{f"{money}__isnull": False, f"{money}_currency__isnull": False}),
                )
                for money in ("amount_net", "amount_remaining")
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise PaymentsAreKept


class SummedDay(models.Model):
    """What the payments come to that were created on a day, in UTC. Whoever loads some forgets their days."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+", db_index=False)
    mode = models.CharField(max_length=4, choices=Mode.choices)
    day = models.DateField()
    totals = models.JSONField()  # a list of `totals.Total`

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "mode", "day"], name="summed_day_once"),
            models.CheckConstraint(name="summed_day_mode_known", condition=Q(mode__in=Mode.values)),
        ]

    def __str__(self) -> str:
        return f"{self.day} ({self.mode})"
