"""Removes the personal data of payments (GDPR articles 5 and 17). The payments keep their position in the list."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeAlias

from django.db.models import QuerySet, Value
from django.db.models.lookups import LessThan
from django.utils import timezone

from payments.models import Access, Payment, PaymentQuerySet, ordering
from payments.models.fields import MillisecondField
from payments.models.ordering import NEWEST_FIRST, compare

BATCH_PAYMENTS = 1000

# `created_at` and `id` of a payment, which determine its position in the list.
ListPosition: TypeAlias = tuple[datetime, str]

# The columns that may contain personal data, with their values after anonymization. Merchants can write anything into
# the texts. A customer ID is a pseudonym of a person (GDPR recital 26). The values are empty, because a placeholder
# such as "removed" could be mistaken for the merchant's own text.
BLANK: dict[str, Any] = {
    "description": "",
    "redirect_url": "",
    "webhook_url": "",
    "metadata": "{}",
    "details": None,
    "customer_id": "",
}


def anonymize_payments(  # noqa: PLR0913  options of the command and the page
    access: Access,
    *,
    before: datetime | None = None,
    customer_id: str | None = None,
    dry_run: bool = False,
    size: int = BATCH_PAYMENTS,
    on_progress: Callable[[int], object],
) -> int:
    """Remove the personal data of payments that were created before a time, or that belong to a customer, or both.

    Return the number of payments that changed or, in a dry run, would change. Each batch of this size is a separate
    transaction. If an import is writing the same payments, the import continues and this function fails: immediately on
    PostgreSQL, after five seconds on SQLite.

    Cost: reads the payments before the time, or of the customer, once along an index, and writes those that change.

    :raises OperationalError: if another process is writing one of the payments; earlier batches remain committed
    """
    payments = Payment.objects.visible_to(access)
    if customer_id is not None:
        payments = payments.of_customer([customer_id])
    changed = 0
    for ids in batches(payments, before=before, size=size):
        if dry_run:
            changed += with_personal_data(payments, ids).count()
        else:
            changed += anonymize_batch(payments, ids)
        on_progress(len(ids))
    return changed


def batches(payments: PaymentQuerySet, *, before: datetime | None, size: int = BATCH_PAYMENTS) -> Iterator[list[str]]:
    """Yield the IDs of payments that were created before a time, or of all payments, newest first, in batches."""
    position = None if before is None else (before, "")  # no ID sorts before the empty one
    while batch := list(next_batch(payments, position, size=size)):
        yield [payment_id for _, payment_id in batch]
        position = batch[-1]


def next_batch(
    payments: PaymentQuerySet, position: ListPosition | None, *, size: int = BATCH_PAYMENTS
) -> QuerySet[Payment, ListPosition]:
    """Return the positions of the next payments: those that are older than a position, or the newest ones."""
    if position is not None:
        created_at, payment_id = position
        last = ordering.position(Value(created_at, output_field=MillisecondField()), Value(payment_id))
        payments = payments.filter(compare(LessThan, last))
    return payments.order_by(*NEWEST_FIRST).values_list("created_at", "id")[:size]


def with_personal_data(payments: PaymentQuerySet, ids: list[str]) -> PaymentQuerySet:
    return payments.filter(id__in=ids).exclude(**BLANK)


def anonymize_batch(payments: PaymentQuerySet, ids: list[str]) -> int:
    """Remove the personal data of payments, and return the number of payments that changed.

    Totals remain valid: they do not depend on the columns that change.
    """
    batch = with_personal_data(payments, ids)
    if not batch.exists():  # so that a batch without changes needs no write lock
        return 0
    # Without `nowait`, this transaction and an import could wait for each other, and the database might end the import.
    return batch.order_by("id").select_for_update(nowait=True).update(**BLANK, anonymized_at=timezone.now())
