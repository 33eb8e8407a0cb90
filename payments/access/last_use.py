"""The time of a key's last use, written at most once a minute. A request never waits or fails because of it."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import Error
from django.db.models import Q

from payments.database.limits import transaction_without_waiting
from payments.models import ApiKey
from payments.runtime.process import process

if TYPE_CHECKING:
    from payments.access.keys import AuthenticatedKey

WRITE_INTERVAL_SECONDS = 60

# After a failed write, later requests would probably fail too.
PAUSE_AFTER_FAILURE = timedelta(seconds=10)

logger = logging.getLogger(__name__)


def record_use(key: AuthenticatedKey, *, now: datetime) -> None:
    """Write that `key` was used, unless a recent use is stored or the database is busy. A later request writes it."""
    if key.last_used_at is not None and now.timestamp() - float(key.last_used_at) < WRITE_INTERVAL_SECONDS:
        return
    if now < process.last_use_paused_until.get(key.id, now) or process.primary.breaker.is_open:
        return
    is_due = Q(last_used_at=None) | Q(last_used_at__lte=now - timedelta(seconds=WRITE_INTERVAL_SECONDS))
    unlocked = ApiKey.objects.select_for_update(skip_locked=True).filter(is_due, pk=key.id)
    try:
        with transaction_without_waiting():
            ApiKey.objects.filter(pk__in=unlocked.values("pk")).update(last_used_at=now)
    except Error as error:
        process.last_use_paused_until[key.id] = now + PAUSE_AFTER_FAILURE
        logger.warning("The last use of API key %s was not written: %s", key.id, error)
