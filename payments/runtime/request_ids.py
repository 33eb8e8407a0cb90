"""Every request has an id, by which its answer, its log lines and its client's own log find each other."""

import random
import re
from contextvars import ContextVar
from typing import Any

HEADER = "X-Request-ID"
KEY = "HTTP_X_REQUEST_ID"
FORM = re.compile(r"[A-Za-z0-9._-]{1,64}")

ID_BITS = 128

current: ContextVar[str] = ContextVar("current", default="-")


def identify(environ: dict[str, Any]) -> str:
    """Take the id that the client, or a proxy, gave; make one in place of none and of one of another form."""
    request_id: str | None = environ.get(KEY)
    if request_id is None or not FORM.fullmatch(request_id):
        environ[KEY] = request_id = f"{random.getrandbits(ID_BITS):032x}"
    current.set(request_id)
    return request_id
