"""The preferences of a user: the organization and mode of the last page, and the columns of the payment list."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from django.db import Error

from payments.database.limits import transaction_without_waiting
from payments.models import StaffPreferences

if TYPE_CHECKING:
    from django.http import HttpRequest

    from payments.models import Access

logger = logging.getLogger(__name__)


def read_preferences(request: HttpRequest) -> StaffPreferences:
    """Return the preferences of the request's user, or the defaults."""
    user_id = cast("int", request.user.pk)  # the admin's pages require a login
    return StaffPreferences.objects.filter(user_id=user_id).first() or StaffPreferences(user_id=user_id)


def remember_access(preferences: StaffPreferences, access: Access) -> None:
    """Store the organization and mode of a page. If the database is busy, log that; the next page tries again."""
    if (preferences.organization_id, preferences.mode) == access:
        return
    try:
        with transaction_without_waiting():
            write(preferences.user_id, organization_id=access.organization_id, mode=access.mode)
    except Error as error:
        logger.warning("The preferences of user %s were not stored: %s", preferences.user_id, error)


def write(user_id: int, **values: Any) -> None:
    """Store some of a user's preferences."""
    StaffPreferences.objects.update_or_create(user_id=user_id, defaults=values)
