"""Renews the revisions of the payments that the ORM writes, in the same transaction.

Every write of the ORM ends in one of three methods of a QuerySet: `_insert` (`create`, `save`, `bulk_create`),
`_update` (`save`) or `update` (`bulk_update`, related managers). With `Meta.base_manager_name`, `save` and related
managers also use the QuerySet of this module. `_insert` and `_update` are private methods of Django. Overriding
the public `save_base` of the payment does not suffice, because loaddata calls `Model.save_base`.

A write locks the states of its payments until the transaction ends. If a transaction writes several times, or with a
`batch_size`, it and an import can therefore wait for each other. PostgreSQL then ends one of the two.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models, transaction
from django.db.models.constants import OnConflict

from payments.models.access_state import AccessState
from payments.models.organization import Access

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Self

# The names of the fields that determine the access of a payment.
ACCESS_FIELDS = frozenset({"organization", "organization_id", "mode"})

ModelT = TypeVar("ModelT", bound=models.Model)


class RenewingQuerySet(models.QuerySet[ModelT]):
    """A QuerySet of payments whose writes renew the revisions of the changed organizations and modes."""

    def update(self, **values: Any) -> int:
        """Update the payments. `select_for_update()` before it locks them first, in the order of the QuerySet.

        :raises ValueError: the ID of a payment would change
        """
        if self.model._meta.pk.name in values:  # noqa: SLF001  Django's documented name for a model's options
            raise ValueError("update() cannot change the ID of a payment.")
        return self.renew_with(partial(models.QuerySet.update, **values), fields=values)

    def _update(self, values: Iterable[tuple[models.Field[Any, Any], Any, Any]]) -> int:
        update_rows = partial(models.QuerySet._update, values=values)  # type: ignore[attr-defined]  # noqa: SLF001
        return self.renew_with(update_rows, fields={field.name for field, _, _ in values})

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
        """Insert payments. The revisions of payments that `ignore_conflicts` skips are renewed too, which is harmless.

        :raises ValueError: `update_conflicts` would change the organization or mode of stored payments
        """
        if not ACCESS_FIELDS.isdisjoint(field.name for field in update_fields or ()):
            raise ValueError("bulk_create() cannot change the organization or mode of a payment. Next: use update()")
        using = using or self.db
        options |= {"using": using, "on_conflict": on_conflict, "update_fields": update_fields}
        with transaction.atomic(using=using, savepoint=False):
            rows = super()._insert(objs, fields, **options)  # type: ignore[misc]
            if on_conflict == OnConflict.UPDATE:
                # Stored payments may have another access. They are read after the write, which locks them.
                accesses = self.with_keys([payment.pk for payment in objs], using=using).accesses()
            else:
                accesses = {Access(int(payment.organization_id), str(payment.mode)) for payment in objs}
            AccessState.objects.using(using).renew(accesses)
        return rows

    _insert.queryset_only = False  # type: ignore[attr-defined]

    def renew_with(self, update_rows: Callable[[Self], int], *, fields: Collection[str]) -> int:
        """Update the payments with `update_rows`, and renew their revisions. Return the number of payments."""
        self._for_write = True  # so that `self.db` is the database for writes, as in Django's `update`
        with transaction.atomic(using=self.db, savepoint=False):
            payments = self.without_joins()
            if ACCESS_FIELDS.isdisjoint(fields):
                changed, accesses = payments.change(update_rows)
            else:
                changed, accesses = payments.move(update_rows)
            AccessState.objects.using(self.db).renew(accesses)
        self._result_cache = None
        return changed

    def change(self, update_rows: Callable[[Self], int]) -> tuple[int, set[Access]]:
        """Update payments that keep their organization and mode. Return their number and accesses.

        Each UPDATE names an organization and mode. So it cannot update payments of another one that match only after
        the first query.
        """
        accesses = self.accesses()
        parts = [self.filter(**access._asdict()) for access in sorted(accesses)]
        return sum(map(update_rows, parts or [self.none()])), accesses  # `none`: so that Django checks the fields

    def move(self, update_rows: Callable[[Self], int]) -> tuple[int, set[Access]]:
        """Update payments that may get another organization or mode. Return their number, old and new accesses.

        Each UPDATE also names the payments. Otherwise it could update those that an earlier one has moved.
        """
        keys: dict[Access, list[Any]] = defaultdict(list)
        for key, organization_id, mode in self.values_list("pk", "organization_id", "mode"):
            keys[Access(organization_id, mode)].append(key)
        parts = [self.filter(**access._asdict(), pk__in=keys[access]) for access in sorted(keys)]
        changed = sum(map(update_rows, parts or [self.none()]))
        moved = self.with_keys([key for part in keys.values() for key in part], using=self.db)
        return changed, keys.keys() | moved.accesses()

    def accesses(self) -> set[Access]:
        """Return the organizations and modes of the payments."""
        rows = self.values_list("organization_id", "mode")
        if not self.query.select_for_update:  # PostgreSQL allows no FOR UPDATE with DISTINCT
            rows = rows.order_by().distinct()
        return set(map(Access._make, rows))

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
