"""The columns of the payment list. Time, payment ID and amount are always shown; users choose the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import TextChoices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from payments.admin.search import SearchForm


class Column(TextChoices):
    """The columns that users choose, in their order on the page."""

    STATUS = "status", "Status"
    METHOD = "method", "Method"
    CARD = "card", "Card"
    SEQUENCE = "sequence", "Sequence type"
    PAID = "paid", "Paid (UTC)"
    CUSTOMER = "customer", "Customer"
    DESCRIPTION = "description", "Description"
    METADATA = "metadata", "Metadata"


DEFAULT = (Column.STATUS, Column.METHOD, Column.CUSTOMER, Column.DESCRIPTION)

# The columns whose cells repeat a filter that has one value.
SELECTED_BY = {Column.STATUS: "status", Column.METHOD: "method", Column.SEQUENCE: "sequenceType"}


def chosen_columns(names: Sequence[str] | None) -> list[Column]:
    """Return the columns with these names; without names, the default. A release may lack a column that is stored."""
    return [column for column in Column if column in (DEFAULT if names is None else names)]


def shown_columns(columns: Sequence[Column], form: SearchForm) -> list[Column]:
    """Return the columns whose cells can differ: not those of a filter with one value."""
    fixed = {applied.name for applied in form.selection.filters if len(applied.values) == 1}
    fixed |= {"customer"} if "search customerId" in fixed else set()
    return [column for column in columns if SELECTED_BY.get(column, column.value) not in fixed]
