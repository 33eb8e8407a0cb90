"""When a key was last used: written at most once a minute, and so that no request waits or fails for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import Error, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Q

from payments.models import ApiKey
from payments.runtime.process import process

if TYPE_CHECKING:
    from payments.access.authentication import AuthenticatedKey

WRITTEN_EVERY_SECONDS = 60

# Where it could not be written, it would fail again and again.
PAUSE = timedelta(seconds=10)
paused_until: dict[int, datetime] = {}

# Do not wait for another writer, for a slow disk, or until the write outlives a power cut.
IMPATIENT = {"lock_timeout": "1ms", "statement_timeout": "100ms", "synchronous_commit": "off"}

logger = logging.getLogger(__name__)


def note_use(key: AuthenticatedKey, *, now: datetime) -> None:
    """Write that `key` was used, unless that is written or the database is busy: then a later request does it."""
    if key.last_used_at is not None and now.timestamp() - float(key.last_used_at) < WRITTEN_EVERY_SECONDS:
        return
    if now < paused_until.get(key.id, now) or process.primary.breaker.is_open:
        return
    unwritten = Q(last_used_at=None) | Q(last_used_at__lte=now - timedelta(seconds=WRITTEN_EVERY_SECONDS))
    free = ApiKey.objects.select_for_update(skip_locked=True).filter(unwritten, pk=key.id)
    try:
        with without_waiting():
            ApiKey.objects.filter(pk__in=free.values("pk")).update(last_used_at=now)
    except Error as error:
        paused_until[key.id] = now + PAUSE
        logger.warning("The last use of API key %s was not written: %s", key.id, error)


@contextmanager
def without_waiting() -> Iterator[None]:
    """Make a transaction that waits for no other writer, nor until it outlives a power cut."""
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            usual = change_settings(cursor, IMPATIENT)
            yield
            change_settings(cursor, usual)  # within another transaction they would outlive this savepoint
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


def change_settings(cursor: CursorWrapper, values: dict[str, str]) -> dict[str, str]:
    """Change PostgreSQL's settings until the transaction ends; return their values before."""
    columns = ", ".join(["current_setting(%s), set_config(%s, %s, true)"] * len(values))
    cursor.execute(f"SELECT {columns}", [part for name, value in values.items() for part in (name, name, value)])
    return dict(zip(values, cursor.fetchone()[::2], strict=True))
