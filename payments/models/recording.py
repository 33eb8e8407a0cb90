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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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

# The names of the fields that determine the access of a payment.
ACCESS_FIELDS = frozenset({"organization", "organization_id", "mode"})

# Those of the fields that determine the days of a payment.
DAY_FIELDS = frozenset(f"{kind}_at" for kind in DayKind)

# The fields of a payment with the ID of its last change, and with its former time of payment.
CHANGE_ID, PAID_BEFORE = "change_id", "paid_before"

# The names of the fields that no total depends on.
NOT_IN_TOTALS = frozenset(
    {"description", "redirect_url", "webhook_url", "sequence_type", "metadata", "details", "expires_at", "customer_id"}
)

# The IDs of changes by the organization and mode of their payments.
Changes: TypeAlias = dict[Access, list[int]]

ModelT = TypeVar("ModelT", bound=models.Model)
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT", int, list[Any])


class RecordingQuerySet(models.QuerySet[ModelT]):
    """A QuerySet of payments whose writes record their changes, and so renew the revisions."""

    def update(self, **values: Any) -> int:
        """Update the payments. `select_for_update()` before it locks them first, in the order of the QuerySet.

        :raises ValueError: the ID of a payment would change
        """
        if self.model._meta.pk.name in values:  # noqa: SLF001  Django's documented name for a model's options
            raise ValueError("update() cannot change the ID of a payment.")

        def update_rows(payments: Self, change_id: int) -> int:
            return models.QuerySet.update(payments, **{**values, CHANGE_ID: change_id}, **values_before(values))

        return self.update_and_record(update_rows, fields=values)

    def _update(self, values: Iterable[tuple[models.Field[Any, Any], Any, Any]], *returning: Any) -> Any:
        own_values = [value for value in values if value[0].name not in {CHANGE_ID, PAID_BEFORE}]
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
        update_fields: Collection[models.Field[Any, Any]] | None = None,
        **options: Any,
    ) -> Any:
        """Insert payments. The changes of payments that `ignore_conflicts` skips are recorded too, which is harmless.

        :raises ValueError: `update_conflicts` would change the organization or mode of stored payments
        """
        if not ACCESS_FIELDS.isdisjoint(field.name for field in update_fields or ()):
            raise ValueError("bulk_create() cannot change the organization or mode of a payment. Next: use update()")
        if update_fields is not None:
            own_fields = (field for field in update_fields if field.name != CHANGE_ID)
            update_fields = [*own_fields, field_of(self.model, CHANGE_ID)]
        using = using or self.db
        options |= {"using": using, "on_conflict": on_conflict, "update_fields": update_fields}
        changes = assign_changes(objs)
        with transaction.atomic(using=using, savepoint=False):
            rows = super()._insert(objs, fields, **options)  # type: ignore[misc]
            written = self.with_keys([payment.pk for payment in objs], using=using)
            days: Mapping[Access, set[UtcDay] | None] = written.utc_days()
            if on_conflict == OnConflict.UPDATE:
                # Stored payments may have another access. They are read after the write, which locks them.
                changes = written.changes()
                if not DAY_FIELDS.isdisjoint(field.name for field in update_fields or ()):
                    days = dict.fromkeys(changes)  # the former days are unknown
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
            keys, days = payments.keys_and_days()
            updated, changes = payments.update_parts(update_rows, keys=keys)
            left: set[Access] = set()
            written = self.with_keys([key for part in keys.values() for key in part], using=self.db)
            if not ACCESS_FIELDS.isdisjoint(fields):
                changes, left = changes_of_move(changes, written.changes())
            if not NOT_IN_TOTALS.issuperset(fields):
                former = {key: access for access, part in keys.items() for key in part}
                for access, utc_days in written.utc_days(former).items():
                    days[access] |= utc_days
                AccessState.objects.using(self.db).record(changes, left=left, days=days)
            else:
                AccessState.objects.using(self.db).record(changes, days={})
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

    def keys_and_days(self) -> tuple[dict[Access, list[Any]], Days]:
        """Return the primary keys of the payments, and the UTC days on which they were created."""
        keys: dict[Access, list[Any]] = defaultdict(list)
        days: Days = defaultdict(set)
        for key, organization_id, mode, created_at in self.values_list("pk", "organization_id", "mode", "created_at"):
            access = Access(organization_id, mode)
            keys[access].append(key)
            days[access].add(UtcDay(DayKind.CREATED, created_at.astimezone(UTC).date()))
        return keys, days

    def utc_days(self, former: Mapping[Any, Access] = {}) -> Days:
        """Return the UTC days on which the payments were created and paid, also before the last write.

        They also count for the former organizations and modes of the payments, by their primary keys.
        """
        days: Days = defaultdict(set)
        columns = ("pk", "organization_id", "mode", "created_at", "paid_at", PAID_BEFORE)
        for key, organization_id, mode, created_at, *paid in self.values_list(*columns):
            access = Access(organization_id, mode)
            times = [(DayKind.CREATED, created_at), *((DayKind.PAID, time) for time in paid if time)]
            of_payment = {UtcDay(kind, time.astimezone(UTC).date()) for kind, time in times}
            for either in {access, former.get(key, access)}:
                days[either] |= of_payment
        return days

    def changes(self) -> Changes:
        """Return the IDs of the last changes of the payments."""
        changes = defaultdict(list)
        for organization_id, mode, change_id in self.values_list("organization_id", "mode", CHANGE_ID).distinct():
            changes[Access(organization_id, mode)].append(change_id)
        return changes

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


def changes_of_move(written: Changes, stored: Changes) -> tuple[Changes, set[Access]]:
    """Return the changes of payments that may have got another organization or mode, and those that payments have left.

    `written` has the IDs by the former organization and mode, `stored` those that the payments have now. If a payment
    was not updated, its ID is one of an earlier change.
    """
    former = {change_id: access for access, change_ids in written.items() for change_id in change_ids}
    new = {access: [change_id for change_id in ids if change_id in former] for access, ids in stored.items()}
    left = {
        former[change_id]
        for access, change_ids in new.items()
        for change_id in change_ids
        if former[change_id] != access
    }
    return {access: change_ids for access, change_ids in new.items() if change_ids}, left


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
