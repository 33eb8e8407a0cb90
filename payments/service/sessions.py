"""The user of a session, before Django handles the request for a page."""

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.db import Error, close_old_connections
from django.http import parse_cookie

from payments.database.migration_state import is_unmigrated
from payments.runtime.circuit_breaker import Guard
from payments.runtime.process import process

SESSIONS = "sessions"  # the name of their circuit breaker

# Other texts cause no query.
STORED_SESSION = re.compile("[a-z0-9]{32}")

# A longer header is not searched: it would take as long as a page, before any share limits it.
COOKIES_CHARACTERS_MAX = 8192


def find_user(environ: Mapping[str, Any]) -> str | None:
    """Return the number of the user whose session a request names; None without such a session.

    :raises Error: the database is unavailable
    """
    cookies = environ.get("HTTP_COOKIE", "")
    is_searched = 0 < len(cookies) <= COOKIES_CHARACTERS_MAX
    session_key = parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME, "") if is_searched else ""
    if not STORED_SESSION.fullmatch(session_key):
        return None
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    try:
        with process.deadline, Guard(process.data_breakers, outages=SESSIONS, timeouts=SESSIONS):
            close_old_connections()
            user_id: str | None = session.get(SESSION_KEY)
    except Error as error:
        if is_unmigrated(error):
            return None  # the page explains it
        raise
    return user_id
