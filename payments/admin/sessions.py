"""The session engine of the admin (the setting SESSION_ENGINE).

A session ends if it is not used for a while, some hours after the login, and with the user's right to use the admin.
"""

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.db import Error

from payments.conf import conf
from payments.database.limits import transaction_without_waiting
from payments.models import StaffSession

# Times in seconds since 1970, in the data of a user's session.
BEGAN_AT = "began_at"
USED_AT = "used_at"

# A login whose second factor is missing, in the data.
PENDING = "pending_login"

# A use is written after this share of the time for which a session may be unused.
WRITTEN_SHARE = 0.1


class SessionStore(db.SessionStore):
    """A session and its data."""

    @classmethod
    def get_model_class(cls) -> type[StaffSession]:
        return StaffSession

    def create_model_instance(self, data: dict[str, Any]) -> StaffSession:
        """Return the row to save. Saving counts as a use."""
        if SESSION_KEY in data:
            data[USED_AT] = time.time()
            data.setdefault(BEGAN_AT, data[USED_AT])
        session = cast("StaffSession", super().create_model_instance(data))
        session.user_id = str(data.get(SESSION_KEY) or data.get(PENDING, {}).get("user", ""))
        session.expire_date = end_of(data)
        return session

    def load(self) -> dict[str, Any]:
        """Return the data, and note now and then that the session is used. No page waits or fails because of it."""
        data: dict[str, Any] = super().load()
        now = time.time()
        if SESSION_KEY in data and now - data.get(USED_AT, 0) > WRITTEN_SHARE * conf.SESSION_IDLE_SECONDS:
            data[USED_AT] = now
            with suppress(Error), transaction_without_waiting():
                row = self.model.objects.filter(session_key=self.session_key)
                row.update(session_data=self.encode(data), expire_date=end_of(data))
        return data


def end_of(data: dict[str, Any]) -> datetime:
    """Return when a session ends that is used now, and not later."""
    now = time.time()
    latest = data.get(BEGAN_AT, now) + settings.SESSION_COOKIE_AGE
    return datetime.fromtimestamp(min(now + conf.SESSION_IDLE_SECONDS, latest), UTC)
