"""The preferences of a user: the organization and mode of the switcher, and the columns of the payment list.

The time of creation, amount and payment ID are always shown; users choose the other columns.
"""

import logging
from collections.abc import Sequence
from typing import Any, cast

from django.db import Error
from django.db.models import TextChoices
from django.http import HttpRequest

from payments.database.limits import transaction_without_waiting
from payments.models import Access, StaffPreferences

logger = logging.getLogger(__name__)


class ListColumn(TextChoices):
    """The columns that users choose, in their order on the page."""

    STATUS = "status", "Status"
    DESCRIPTION = "description", "Order or description"
    METADATA = "metadata", "Metadata"
    METHOD = "method", "Method or card"
    SEQUENCE = "sequence", "Type"
    PAID = "paid", "Paid"
    CUSTOMER = "customer", "Customer"


DEFAULT_COLUMNS = (ListColumn.STATUS, ListColumn.DESCRIPTION, ListColumn.METHOD, ListColumn.CUSTOMER)


def read_preferences(request: HttpRequest) -> StaffPreferences:
    user_id = cast("int", request.user.pk)  # the admin's pages require a login
    return StaffPreferences.objects.filter(user_id=user_id).first() or StaffPreferences(user_id=user_id)


def remember_access(preferences: StaffPreferences, access: Access) -> None:
    """Store the organization and mode that the user selects. If the database is busy, log that."""
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
