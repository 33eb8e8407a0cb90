"""The time of a key's last use, written at most once a minute. A request never waits or fails because of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import Error, connection, transaction
from django.db.models import Q

from payments.database.time_limits import change_settings
from payments.models import ApiKey
from payments.runtime.process import process

if TYPE_CHECKING:
    from payments.access.keys import AuthenticatedKey

WRITE_INTERVAL_SECONDS = 60

# After a failed write, later requests would probably fail too.
PAUSE_AFTER_FAILURE = timedelta(seconds=10)

# Never wait for locks or for the disk.
NO_WAITING = {"lock_timeout": "1ms", "statement_timeout": "100ms", "synchronous_commit": "off"}

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


@contextmanager
def transaction_without_waiting() -> Iterator[None]:
    """Open a transaction that does not wait for other writers, nor for the disk."""
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            previous = change_settings(cursor, NO_WAITING)
            yield
            change_settings(cursor, previous)  # otherwise they would remain after this savepoint
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        (milliseconds,) = cursor.fetchone()
        cursor.execute("PRAGMA busy_timeout = 0")
        try:
            with transaction.atomic():
                yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {milliseconds}")
