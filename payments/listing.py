"""A list of payments: its access, filters and order, and the parts of its SQL statements."""

import re
from collections.abc import Hashable
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, cast

from django.db.models import Expression, QuerySet, TextField, Value
from django.db.models.functions import Cast

from payments.database.round_trips import NOTHING, ReadAhead
from payments.database.statements import Placeholder, Statement
from payments.filter_types import Filter, Values
from payments.filters import EVERYTHING, Selection
from payments.models import Access, AccessState, Payment, PaymentQuerySet
from payments.rows import COLUMNS, ID, Row, as_rows
from payments.runtime.servers import PRIMARY

NO_VALUE: Any = Value(None, output_field=TextField())

# The column of the revision, in the row that has no ID.
REVISION = ID + 1


class FilterShape(NamedTuple):
    """The part of a filter that determines the SQL: the number of values or, for some filters, the values."""

    name: str
    filter: Filter
    value_count: int
    values: Values | None

    @property
    def placeholders(self) -> list[str]:
        name = re.sub(r"\W+", "_", self.name)
        return [f"{name}_{index}" for index in range(self.value_count)]

    def select(self, payments: PaymentQuerySet) -> PaymentQuerySet:
        return self.filter.apply(payments, self.values or tuple(map(Placeholder, self.placeholders)), UNBOUND_ACCESS)


Shape: TypeAlias = tuple[FilterShape, ...]


class Listing(NamedTuple):
    """A list of payments: the access, the filters and order, and the database server that is read."""

    access: Access
    selection: Selection = EVERYTHING
    using: str = PRIMARY
    # The revision of the payments on the primary, read after the key. None: it was not needed, or could not be read.
    revision: int | None = None
    read_ahead: ReadAhead = NOTHING
    client: Hashable = None  # the client of the API that reads the list, because its reads with filters have a share

    @property
    def shape(self) -> Shape:
        return tuple(
            FilterShape(name, filter_, len(values), values if filter_.values_are_literals else None)
            for name, filter_, values in self.selection.filters
        )

    def values(self, *, start: str | None) -> dict[str, Any]:
        """Return the values of the placeholders; `start` is the ID of a payment."""
        values = {"organization_id": self.access.organization_id, "mode": self.access.mode, "start": start}
        if self.selection.filters:
            values |= self.filter_values()
        return values

    def filter_values(self) -> dict[str, str]:
        return {
            placeholder: as_stored(value)
            for shape, applied in zip(self.shape, self.selection.filters, strict=True)
            for placeholder, value in zip(shape.placeholders, applied.values, strict=True)
        }


def as_stored(value: Any) -> str:
    """Return a value as both databases compare it with a column: a time in UTC, without an offset."""
    return str(value.replace(tzinfo=None) if isinstance(value, datetime) else value)


# The access of a statement is bound when the statement runs.
UNBOUND_ACCESS = Access(cast("int", Placeholder("organization_id")), cast("str", Placeholder("mode")))


def visible_payments(*, hides_mode: bool = False, hides_list: bool = False) -> PaymentQuerySet:
    """Return the payments of an access that is bound when the statement runs. Each statement starts here."""
    return Payment.objects.visible_to(UNBOUND_ACCESS, hides_mode=hides_mode, hides_list=hides_list)


def apply_filters(payments: PaymentQuerySet, shape: Shape) -> PaymentQuerySet:
    for filter_shape in shape:
        payments = filter_shape.select(payments)
    return payments


def state() -> QuerySet[AccessState, AccessState]:
    """Return a query for the state of the payments of an access that is bound when the statement runs."""
    return AccessState.objects.filter(organization_id=Placeholder("organization_id"), mode=Placeholder("mode"))


def state_row(*values: str | Expression, columns: int) -> QuerySet[AccessState, Row]:
    """Return a query for the row that ends the rows of a statement; it has so many columns.

    It has no ID. Its values of the state begin at the column `REVISION`, as text. The rows of a statement come from one
    snapshot, so the state belongs to the payments.
    """
    row = [NO_VALUE] * columns
    for column, value in enumerate(values, start=REVISION):
        row[column] = Cast(value, TextField())
    return cast("QuerySet[AccessState, Row]", state().values_list(*row))


def revision_row(*, columns: int) -> QuerySet[AccessState, Row]:
    """Return a query for the row whose only value is the revision."""
    return state_row("revision", columns=columns)


@lru_cache
def revision_statement() -> Statement[tuple[int]]:
    """Return the statement for the revision. It is not joined with the key: Citus distributes states, but not keys."""
    return Statement(state().values_list("revision"))


@lru_cache
def payment_statement() -> Statement[Row]:
    """Return the statement for the payment whose ID is `start`, and the revision."""
    return Statement(as_rows(visible_payments().filter(id=Placeholder("start"))), revision_row(columns=len(COLUMNS)))
