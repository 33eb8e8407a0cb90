"""The preferences of a user: the organization and mode of the last page, and the columns of the payment list.

The time of creation, payment ID and amount are always shown; users choose the other columns.
"""

import logging
from collections.abc import Sequence
from typing import Any, cast

from django.db import Error
from django.db.models import TextChoices
from django.http import HttpRequest

from payments.database.limits import transaction_without_waiting
from payments.listing.filters import AppliedFilter
from payments.models import Access, DayKind, StaffPreferences

logger = logging.getLogger(__name__)


class ListColumn(TextChoices):
    """The columns that users choose, in their order on the page."""

    STATUS = "status", "Status"
    METHOD = "method", "Method"
    CARD = "card", "Card"
    SEQUENCE = "sequence", "Sequence type"
    PAID = "paid", "Paid"
    CUSTOMER = "customer", "Customer"
    DESCRIPTION = "description", "Description"
    METADATA = "metadata", "Metadata"


DEFAULT_COLUMNS = (ListColumn.STATUS, ListColumn.METHOD, ListColumn.CUSTOMER, ListColumn.DESCRIPTION)

# The columns whose cells repeat a filter that has one value.
SELECTED_BY = {
    ListColumn.STATUS: {"status"},
    ListColumn.METHOD: {"method"},
    ListColumn.SEQUENCE: {"sequenceType"},
    ListColumn.CUSTOMER: {"search customerId"},
}


def read_preferences(request: HttpRequest) -> StaffPreferences:
    user_id = cast("int", request.user.pk)  # the admin's pages require a login
    return StaffPreferences.objects.filter(user_id=user_id).first() or StaffPreferences(user_id=user_id)


def remember_access(preferences: StaffPreferences, access: Access) -> None:
    """Store the organization and mode of a page. If the database is busy, log that; the next page tries again."""
    if (preferences.organization_id, preferences.mode) == access:
        return
    try:
        with transaction_without_waiting():
            write_preferences(preferences.user_id, organization_id=access.organization_id, mode=access.mode)
    except Error as error:
        logger.warning("The preferences of user %s were not stored: %s", preferences.user_id, error)


def write_preferences(user_id: int, **values: Any) -> None:
    StaffPreferences.objects.update_or_create(user_id=user_id, defaults=values)


def chosen_columns(names: Sequence[str] | None) -> list[ListColumn]:
    """Return the columns with these names; without names, the default. A release may lack a column that is stored."""
    return [column for column in ListColumn if column in (DEFAULT_COLUMNS if names is None else names)]


def shown_columns(
    columns: Sequence[ListColumn], filters: Sequence[AppliedFilter], *, kind: DayKind
) -> list[ListColumn]:
    """Return the columns whose cells can differ: not those of a filter with one value. Paid days are always shown."""
    fixed = {applied.name for applied in filters if len(applied.values) == 1}
    needed = {*columns, ListColumn.PAID} if kind == DayKind.PAID else {*columns}
    return [column for column in ListColumn if column in needed and fixed.isdisjoint(SELECTED_BY.get(column, ()))]
