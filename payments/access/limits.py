"""What is counted for the rate limits: the requests of a key, and the invalid keys from an address."""

from typing import Any

from django.conf import settings

from payments.access.clients import client_address
from payments.runtime.process import process


def has_requests_left(key_id: int) -> bool:
    """Return whether the key's rate limit allows another request. It is not counted."""
    return not settings.RATE_LIMIT or process.rate_limits.remaining(limit_name(key_id), settings.RATE_LIMIT) > 0


def limit_name(key_id: int) -> str:
    return f"key {key_id}"


def count_invalid_key(request: Any) -> float:
    """Count an invalid key. Return the seconds for which the client's address is blocked; 0 if it is not."""
    if settings.BAD_KEY_LIMIT is None:
        return 0.0
    return process.rate_limits.count(f"bad keys {client_address(request.META)}", settings.BAD_KEY_LIMIT).wait_seconds
