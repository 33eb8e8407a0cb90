"""Request IDs, which connect a response, its log lines and the client's own log."""

import random
import re
from contextvars import ContextVar
from typing import Any

HEADER = "X-Request-ID"
ENVIRON_KEY = "HTTP_X_REQUEST_ID"
VALID_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

ID_BITS = 128

current: ContextVar[str] = ContextVar("current", default="-")


def assign(environ: dict[str, Any]) -> str:
    """Return the valid ID that the client or a proxy sent, or a new one, and make it the current one."""
    request_id: str | None = environ.get(ENVIRON_KEY)
    if request_id is None or not VALID_ID.fullmatch(request_id):
        environ[ENVIRON_KEY] = request_id = f"{random.getrandbits(ID_BITS):032x}"
    current.set(request_id)
    return request_id
