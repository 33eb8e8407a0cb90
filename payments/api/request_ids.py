"""Request IDs, which connect a response, its log lines and the client's own log."""

import random
import re
from contextvars import ContextVar
from typing import Any

HEADER = "X-Request-ID"
VARIABLE = "HTTP_X_REQUEST_ID"  # of the WSGI environment: the ID that the client or a proxy sent
ENVIRON_KEY = "payments.request_id"  # of the WSGI environment: the ID of the request
VALID_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

ID_BITS = 128

current: ContextVar[str] = ContextVar("current", default="-")


def assign(environ: dict[str, Any]) -> str:
    """Return the request's ID: a valid one that the client sent, or a new one. It becomes the current one."""
    request_id: str | None = environ.get(ENVIRON_KEY)
    if request_id is None:
        request_id = environ.get(VARIABLE)
        if request_id is None or not VALID_ID.fullmatch(request_id):
            request_id = f"{random.getrandbits(ID_BITS):032x}"
        environ[ENVIRON_KEY] = request_id
        current.set(request_id)
    return request_id
