"""Every request has an id, by which its answer, its log lines and its client's own log find each other."""

import itertools
import re
import secrets
from contextvars import ContextVar
from typing import Any

HEADER = "X-Request-ID"
KEY = "HTTP_X_REQUEST_ID"
FORM = re.compile(r"[A-Za-z0-9._-]{1,64}")

# An id made here: which process, and which of its requests.
THIS_PROCESS = secrets.token_hex(8)
counted = itertools.count(1)

current: ContextVar[str] = ContextVar("current", default="-")


def identify(environ: dict[str, Any]) -> str:
    """Take the id that the client, or a proxy, gave; make one in place of none and of one of another form."""
    request_id: str | None = environ.get(KEY)
    if request_id is None or not FORM.fullmatch(request_id):
        environ[KEY] = request_id = f"{THIS_PROCESS}{next(counted):016x}"
    current.set(request_id)
    return request_id
