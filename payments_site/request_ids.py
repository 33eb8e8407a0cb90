"""Every request has an id, by which its answer, its log lines and its client's own log find each other."""

import re
import secrets
from contextvars import ContextVar
from typing import Any

HEADER = "X-Request-ID"
KEY = "HTTP_X_REQUEST_ID"
FORM = re.compile(r"[A-Za-z0-9._-]{1,64}")

current: ContextVar[str] = ContextVar("current", default="-")


def identify(environ: dict[str, Any]) -> str:
    """Take the id that the client, or a proxy, gave; make one in place of none and of one of another form."""
    given = environ.get(KEY, "")
    environ[KEY] = request_id = given if FORM.fullmatch(given) else secrets.token_hex(16)
    current.set(request_id)
    return request_id
