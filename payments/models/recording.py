"""Records the changes of payments that the ORM writes, in the same transaction.

Every write of the ORM ends in one of three methods of a QuerySet: `_insert` (`create`, `save`, `bulk_create`),
`_update` (`save`) or `update` (`bulk_update`, related managers). With `Meta.base_manager_name`, `save` and related
managers also use the QuerySet of this module. `_insert` and `_update` are private methods of Django. Overriding
the public `save_base` of the payment does not suffice, because loaddata calls `Model.save_base`.

A write locks the states of its payments until the transaction ends. If a transaction writes several times, or with a
`batch_size`, it and an import can therefore wait for each other. PostgreSQL then ends one of the two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC
from functools import reduce
from operator import add
from typing import Any, Self, TypeAlias, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import models, transaction
from django.db.models.constants import OnConflict

from payments.models.access_state import CHANGE_PAYMENTS_MAX, AccessState, Days, UtcDay, new_change_id
from payments.models.days import DayKind
from payments.models.organization import Access

# The fields that never change: clients could not follow a payment that leaves their list, or moves within it.
FIXED_FIELDS = frozenset({"id", "pk", "organization", "organization_id", "mode", "created_at"})

# The fields of a payment with the ID of its last change, and with its former time of payment.
CHANGE_ID, PAID_BEFORE = "change_id", "paid_before"

# The names of the fields that no total depends on.
NOT_IN_TOTALS = frozenset(
    {
        *("description", "redirect_url", "webhook_url", "metadata", "details", "customer_id", "anonymized_at"),
        *("sequence_type", "expires_at"),
    }
)

# The IDs of changes by the organization and mode of their payments.
Changes: TypeAlias = dict[Access, list[int]]

ModelT = TypeVar("ModelT", bound=models.Model)
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT", int, list[Any])


class FixedField(ValueError):
    """A write would change a field of a payment that never changes."""

    def __init__(self) -> None:
        super().__init__("The ID, organization, mode and creation time of a payment never change.")


class RecordingQuerySet(models.QuerySet[ModelT]):
    """A QuerySet of payments whose writes record their changes, and so renew the revisions."""

    def update(self, **values: Any) -> int:
        """Update the payments. `select_for_update()` before it locks them first, in the order of the QuerySet.

        :raises FixedField: a field that never changes would be written
        """
        if not FIXED_FIELDS.isdisjoint(values):
            raise FixedField

        def update_rows(payments: Self, change_id: int) -> int:
            return models.QuerySet.update(payments, **{**values, CHANGE_ID: change_id}, **values_before(values))

        return self.update_and_record(update_rows, fields=values)

    def _update(self, values: Iterable[tuple[models.Field[Any, Any], Any, Any]], *returning: Any) -> Any:
        fixed = {field.attname: value for field, _, value in values if field.name in FIXED_FIELDS}
        if fixed and self.exclude(**fixed).exists():
            raise FixedField
        own_values = [value for value in values if value[0].name not in {CHANGE_ID, PAID_BEFORE, *FIXED_FIELDS}]
        fields = {field.name for field, _, _ in own_values}

        def update_rows(payments: Self, change_id: int) -> Any:
            added = {CHANGE_ID: change_id} | values_before(fields)
            all_values = [*own_values, *((field_of(self.model, name), None, value) for name, value in added.items())]
            try:
                return models.QuerySet._update(payments, all_values, *returning)  # type: ignore[attr-defined]  # noqa: SLF001
            except EmptyResultSet:  # Django 6 raises it for no payments, if a value is an expression
                return []

        return self.update_and_record(update_rows, fields=fields)

    _update.queryset_only = False  # type: ignore[attr-defined]

    def _insert(
        self,
        objs: Sequence[Any],
        fields: Sequence[models.Field[Any, Any]],
        *,
        using: str | None = None,
        on_conflict: OnConflict | None = None,
        **options: Any,
    ) -> Any:
        """Insert payments. The changes of payments that `ignore_conflicts` skips are recorded too, which is harmless.

        :raises ValueError: `update_conflicts` could change payments of another organization
        """
        if on_conflict == OnConflict.UPDATE:
            raise ValueError("bulk_create() cannot update payments. Next: use update()")
        using = using or self.db
        changes = assign_changes(objs)
        with transaction.atomic(using=using, savepoint=False):
            rows = super()._insert(objs, fields, using=using, on_conflict=on_conflict, **options)  # type: ignore[misc]
            days = self.with_keys([payment.pk for payment in objs], using=using).utc_days()
            AccessState.objects.using(using).record(changes, days=days)
        return rows

    _insert.queryset_only = False  # type: ignore[attr-defined]

    def update_and_record(self, update_rows: Callable[[Self, int], ResultT], *, fields: Collection[str]) -> ResultT:
        """Update the payments with `update_rows`, and record the changes. Return the sum of its results.

        `update_rows` gets some of the payments and the ID of their change. It returns the number of payments, or a
        list with the row of each.
        """
        self._for_write = True  # so that `self.db` is the database for writes, as in Django's `update`
        with transaction.atomic(using=self.db, savepoint=False):
            payments = self.without_joins()
            keys = payments.keys_by_access()
            updated, changes = payments.update_parts(update_rows, keys=keys)
            written = self.with_keys([key for part in keys.values() for key in part], using=self.db)
            days = {} if NOT_IN_TOTALS.issuperset(fields) else written.utc_days()
            AccessState.objects.using(self.db).record(changes, days=days)
        self._result_cache = None
        return updated

    def update_parts(
        self, update_rows: Callable[[Self, int], ResultT], *, keys: dict[Access, list[Any]]
    ) -> tuple[ResultT, Changes]:
        """Update the payments with these keys, one change after the other. Return the results' sum, and the changes.

        Each UPDATE names an organization and mode, and has the conditions of this query. So it does not update
        payments that another transaction has changed after the first query so that they do not match.
        """
        results, changes = [], defaultdict(list)
        for access in sorted(keys):
            for part in parts(sorted(keys[access])):
                change_id = new_change_id()
                results.append(update_rows(self.filter(**access._asdict(), pk__in=part), change_id))
                changes[access].append(change_id)
        if not keys:
            results.append(update_rows(self.none(), 0))  # so that Django checks the fields
        return reduce(add, results), changes

    def keys_by_access(self) -> dict[Access, list[Any]]:
        """Return the primary keys of the payments by organization and mode."""
        keys: dict[Access, list[Any]] = defaultdict(list)
        for key, *access in self.values_list("pk", "organization_id", "mode"):
            keys[Access._make(access)].append(key)
        return keys

    def utc_days(self) -> Days:
        """Return the UTC days on which the payments were created and paid, also before the last write."""
        days: Days = defaultdict(set)
        columns = ("organization_id", "mode", "created_at", "paid_at", PAID_BEFORE)
        for organization_id, mode, created_at, *paid in self.values_list(*columns):
            times = [(DayKind.CREATED, created_at), *((DayKind.PAID, time) for time in paid if time)]
            days[Access(organization_id, mode)] |= {UtcDay(kind, time.astimezone(UTC).date()) for kind, time in times}
        return days

    def without_joins(self) -> Self:
        """Return the same payments as a query without joins.

        Django would otherwise move all conditions into a subquery. If another transaction changes the organization or
        mode of a payment while UPDATE waits for its lock, PostgreSQL would not evaluate the subquery again.
        """
        if self.query.count_active_tables() <= 1:
            return self
        return type(self)(self.model, using=self.db).filter(pk__in=self.values("pk"))

    def with_keys(self, keys: Collection[Any], *, using: str) -> Self:
        """Return the payments with these primary keys, without the conditions of this query."""
        return type(self)(self.model, using=using).filter(pk__in=keys)


def values_before(fields: Collection[str]) -> dict[str, Any]:
    """Return the values of former times of payment for an UPDATE of these fields, in which the old values count."""
    return {PAID_BEFORE: models.F("paid_at")} if "paid_at" in fields else {}


def field_of(model: type[models.Model], name: str) -> models.Field[Any, Any]:
    field: models.Field[Any, Any] = model._meta.get_field(name)  # type: ignore[assignment]  # noqa: SLF001
    return field


def assign_changes(payments: Iterable[Any]) -> Changes:
    """Give new payments the IDs of their changes, and return these."""
    by_access = defaultdict(list)
    for payment in payments:
        by_access[Access(int(payment.organization_id), str(payment.mode))].append(payment)
    changes: Changes = defaultdict(list)
    for access, group in by_access.items():
        for part in parts(group):
            changes[access].append(new_change_id())
            for payment in part:
                payment.change_id = changes[access][-1]
    return changes


def parts(items: Sequence[ItemT]) -> Iterator[Sequence[ItemT]]:
    """Yield parts of a sequence, each small enough for one change."""
    for start in range(0, len(items), CHANGE_PAYMENTS_MAX):
        yield items[start : start + CHANGE_PAYMENTS_MAX]
