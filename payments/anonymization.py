"""Personal data of payments, blanked (GDPR articles 5 and 17). The payments stay, each where it is in the list."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeAlias

from django.db import transaction
from django.db.models import QuerySet, Value

from payments.changes import renew_revision
from payments.fields import MillisecondField
from payments.models import Access, Payment, PaymentQuerySet
from payments.ordering import NEWEST_FIRST, compare, position

BATCH_PAYMENTS = 1000

# Where a payment stands in the list.
Position: TypeAlias = tuple[datetime, str]

# Texts of the merchant's own may hold anything; a customer's id is a pseudonym of a person (recital 26).
BLANK: dict[str, Any] = {
    "description": "",
    "redirect_url": "",
    "webhook_url": "",
    "metadata": "{}",
    "details": None,
    "customer_id": "",
}


def anonymize_payments(
    access: Access,
    *,
    before: datetime | None = None,
    customer_id: str | None = None,
    dry_run: bool = False,
    on_progress: Callable[[int], object],
) -> int:
    """Blank what is personal in payments that were created before a moment, or are of a customer, or both.

    Return how many that changed or, in a dry run, would change. Each batch is a transaction of its own. Where an import
    has the same payments it goes on, and this fails: at once on PostgreSQL, after five seconds on SQLite.

    Cost: what is blanked, and the payments of before that moment, or of the customer, are read along an index once.

    :raises OperationalError: where somebody else is writing one of them; the batches before are done
    """
    payments = Payment.objects.visible_to(access)
    if customer_id is not None:
        payments = payments.of_customer([customer_id])
    changed = 0
    for ids in batches(payments, before=before):
        if dry_run:
            changed += personal(payments, ids).count()
        else:
            changed += blanked(payments, ids, organization_id=access.organization_id)
        on_progress(len(ids))
    return changed


def batches(payments: PaymentQuerySet, *, before: datetime | None) -> Iterator[list[str]]:
    """Yield the ids of payments created before a moment, or of all, newest first, piece by piece."""
    start: Position | None = None if before is None else (before, "")  # no id comes before an empty one
    while found := list(older(payments, start)):
        yield [payment_id for _, payment_id in found]
        start = found[-1]


def older(payments: PaymentQuerySet, start: Position | None) -> QuerySet[Payment, Position]:
    if start is not None:
        moment, payment_id = start
        reached = position(Value(moment, output_field=MillisecondField()), Value(payment_id))
        payments = payments.filter(compare("<", reached))
    return payments.order_by(*NEWEST_FIRST).values_list("created_at", "id")[:BATCH_PAYMENTS]


def personal(payments: PaymentQuerySet, ids: list[str]) -> PaymentQuerySet:
    """Return those of these ids of which something is left to be blanked."""
    return payments.filter(id__in=ids).exclude(**BLANK)


def blanked(payments: PaymentQuerySet, ids: list[str], *, organization_id: int) -> int:
    found = personal(payments, ids)
    if not found.exists():  # then there is no need to be the one that writes
        return 0
    with transaction.atomic():
        locked = found.order_by("id").select_for_update(nowait=True).values_list("id", flat=True)
        changed = payments.filter(id__in=list(locked)).update(**BLANK)
        renew_revision([organization_id])
    return changed
